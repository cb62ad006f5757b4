"""MS-MQBR as pure functions over the model."""
