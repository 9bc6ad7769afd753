"""The request context: what the client says of the place it works in."""

TABLE = """\
RequestContextArgs = 2 notes_session_id string?, 3 workspace_id string?, 4 read_only_pinned_tree_sha string?,
    5 read_only_plugin_cache_root string?
RequestContextResult = |1 success RequestContextSuccess, |2 error RequestContextError,
    |3 rejected RequestContextRejected
RequestContextSuccess = 1 request_context RequestContext
RequestContextError = 1 error string
RequestContextRejected = 1 reason string
RequestContext = 2 rules CursorRule[], 4 env RequestContextEnv, 6 repository_info bytes(RepositoryIndexingInfo)[],
    7 tools McpToolDefinition[], 11 git_repos GitRepoInfo[], 13 project_layouts LsDirectoryTreeNode[],
    14 mcp_instructions McpInstructions[], 16 cloud_rule string?, 17 web_search_enabled bool?,
    20 file_contents map<string,string>, 21 user_intent_summary string?, 24 web_fetch_enabled bool?,
    32 supports_mcp_auth bool?, 33 git_repo_info_complete bool?, 35 read_lints_enabled bool?,
    36 mcp_info_complete bool?, 39 rules_info_complete bool?, 40 env_info_complete bool?,
    41 repository_info_complete bool?, 42 custom_subagents_info_complete bool?, 43 agent_skills_info_complete bool?,
    44 mcp_file_system_info_complete bool?, 45 git_status_info_complete bool?
RequestContextEnv = 1 os_version string, 2 workspace_paths string[], 3 shell string, 5 sandbox_enabled bool,
    7 terminals_folder string, 8 agent_shared_notes_folder string, 9 agent_conversation_notes_folder string,
    10 time_zone string, 11 project_folder string, 12 agent_transcripts_folder string, 13 artifacts_folder string?,
    14 sandbox_supported bool?, 16 sandbox_network_has_defaults bool?, 17 sandbox_network_explicit_allowlist string[],
    18 secret_redaction_enabled bool?, 19 computer_use_supported bool?, 20 is_working_dir_home_dir bool?,
    21 process_working_directory string?, 22 smart_mode_classifier_auto_mode_enabled bool?,
    23 dev_force_next_smart_mode_classifier_block_token string?
CursorRule = 1 full_path string, 2 content string, 3 type bytes(CursorRuleType), 4 source enum(CursorRuleSource),
    5 git_remote_origin string?
McpInstructions = 1 server_name string, 2 instructions string, 3 server_identifier string
GitRepoInfo = 1 path string, 2 status string, 3 branch_name string, 4 remote_url string?,
    5 previous_branch_is_ancestor bool?
"""
