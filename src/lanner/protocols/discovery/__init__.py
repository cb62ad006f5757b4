"""Directory service discovery over UDP (MS-MQSD): who offers the directory on our networks."""
