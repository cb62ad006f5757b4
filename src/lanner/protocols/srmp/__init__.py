"""SRMP: messages over HTTP and multicast (MC-MQSRM)."""
