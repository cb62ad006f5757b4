"""Calls made by Samba's Python bindings; run by the Python that has them. Prints what came back as JSON."""

# mypy: ignore-errors

import json
import sys

from samba import NTSTATUSError
from samba.credentials import DONT_USE_KERBEROS, MUST_USE_KERBEROS, Credentials
from samba.dcerpc import epmapper, mgmt
from samba.dcerpc.base import ClientConnection
from samba.dcerpc.misc import policy_handle
from samba.param import LoadParm


def main(job):
    lp = LoadParm()
    lp.set("log level", "0")
    credentials = Credentials()
    credentials.guess(lp)
    if job.get("user"):
        credentials.set_username(job["user"])
        credentials.set_password(job["password"])
        credentials.set_domain(job.get("domain", ""))
        if job.get("realm"):
            lp.set("realm", job["realm"])
            credentials.set_realm(job["realm"])
        kerberos = MUST_USE_KERBEROS if job.get("kerberos") else DONT_USE_KERBEROS
        credentials.set_kerberos_state(kerberos)
    else:
        credentials.set_anonymous()
    host, port, options = job.get("host", "127.0.0.1"), job["port"], job.get("options", "")
    binding = f"ncacn_ip_tcp:{host}[{port}{options}]"
    answer = {}
    basis = mgmt.mgmt(binding, lp, credentials)
    connections = [
        ClientConnection(binding, (uuid, version), lp_ctx=lp, basis_connection=basis)
        for uuid, version in job["interfaces"]
    ]
    # After the other connections: Samba's alter_context repeats a token of NTLM that a call has freed.
    if job.get("mgmt"):
        answer["interfaces"] = [str(each.id.uuid) for each in basis.inq_if_ids().if_id]
        answer["listening"] = basis.is_server_listening()
    answer["answers"] = []
    for index, opnum, data in job["calls"]:
        try:
            answer["answers"].append(connections[index].request(opnum, bytes.fromhex(data)).hex())
        except NTSTATUSError as error:
            answer["answers"].append("%08x" % (error.args[0] & 0xFFFFFFFF))
    return answer


def lookup(job):
    mapper = epmapper.epmapper(f"ncacn_ip_tcp:127.0.0.1[{job['port']}]", LoadParm())
    handle = policy_handle()
    found = []
    while True:
        handle, entries, status = mapper.epm_Lookup(0, None, None, 1, handle, job["count"])
        found.extend(entry.annotation for entry in entries)
        if status or handle.uuid == policy_handle().uuid:
            return {"annotations": found}


job = json.load(sys.stdin)
try:
    result = lookup(job) if job.get("lookup") else main(job)
except NTSTATUSError as error:
    result = {"error": "%08x" % (error.args[0] & 0xFFFFFFFF), "text": error.args[1]}
print(json.dumps(result))
