"""Remote management of a queue manager: the interface qmmgmt (MS-MQMR) over DCE/RPC, server and client."""
