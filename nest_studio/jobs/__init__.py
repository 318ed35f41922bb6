"""Work in other processes: the queue, its workers, pools, and how a page waits for them."""
