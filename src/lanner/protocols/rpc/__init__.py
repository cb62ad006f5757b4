"""DCE/RPC over TCP (C706, MS-RPCE): the layer itself, which knows nothing of MSMQ."""
