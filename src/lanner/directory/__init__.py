"""Where sites, links, queue managers and public queues come from."""
