"""What either side sends: the outermost messages."""

TABLE = """\
AgentClientMessage = |1 run_request AgentRunRequest, |2 exec_client_message ExecClientMessage,
    |3 kv_client_message KvClientMessage, |4 conversation_action ConversationAction,
    |5 exec_client_control_message ExecClientControlMessage, |6 interaction_response InteractionResponse,
    |7 client_heartbeat ClientHeartbeat, |8 prewarm_request bytes(PrewarmRequest)
AgentServerMessage = |1 interaction_update InteractionUpdate, |2 exec_server_message ExecServerMessage,
    |3 conversation_checkpoint_update ConversationStateStructure, |4 kv_server_message KvServerMessage,
    |5 exec_server_control_message ExecServerControlMessage, |7 interaction_query InteractionQuery
ClientHeartbeat = (empty)
"""
