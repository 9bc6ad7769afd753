"""What is going on, for whoever looks: one store of all requests, shown in the terminal and in the browser."""
