"""SRMP: messages over HTTP and HTTPS (MC-MQSRM)."""
