"""What carries the messages of a run: the opening of RunSSE and one append."""

TABLE = """\
BidiRequestId = 1 request_id string
BidiAppendRequest = 1 data string, 2 request_id BidiRequestId, 3 append_seqno int64, 4 data_binary bytes
BidiAppendResponse = (empty)
"""
