/** What the contract calls the actions of the audit log, as verbs of one resource and as whole names. */
const verbs: Readonly<Record<string, readonly string[]>> = {
  project: ['create', 'update', 'delete'],
  application: ['create', 'update', 'delete', 'deploy', 'start', 'stop', 'restart', 'reload', 'rebuild'],
  volume_backup_config: ['create', 'update', 'delete'],
  file_mount: ['create', 'update', 'delete'],
  database: ['create', 'update', 'delete', 'start', 'stop', 'restart', 'reload', 'backup', 'restore', 'upgrade'],
  backup_config: ['create', 'update', 'delete', 'run'],
  backup_destination: ['create', 'update', 'delete'],
  notification_channel: ['create', 'update', 'delete', 'test'],
  deploy_hook: ['create', 'regenerate', 'delete', 'trigger', 'reveal']
}
const names = [
  'login', 'login_failed', 'login_2fa_failed', 'logout', 'password_reset_requested', 'password_reset_completed',
  'totp.enrollment_started', 'totp.enabled', 'totp.disabled', 'totp.recovery_codes_regenerated', 'totp.admin_reset', 'token_created', 'token_deleted',
  'create_user', 'update_user_role', 'delete_user', 'reset_user_password', 'invitation_sent', 'invitation_revoked', 'invitation_accepted',
  'instantiate_template', 'change_application_source', 'update_application_runtime', 'set_health_check', 'set_resources', 'clear_build_cache',
  'update_preview_config', 'delete_preview', 'reveal_webhook_secret', 'reveal_file_mount', 'reveal_env_var',
  'add_domain', 'update_domain', 'remove_domain', 'upload_certificate', 'delete_certificate',
  'create_volume', 'delete_volume', 'restore_volume', 'run_volume_backup', 'delete_database_backup',
  'update_settings', 'update_smtp_settings', 'test_smtp_settings', 'restart_service', 'reconcile_proxy', 'clear_job_queue', 'clear_pending_queue',
  'backup_triggered', 'upsert_quota', 'delete_quota', 'alert_sent', 'save_git_provider_config', 'delete_git_provider_config', 'delete_git_integration',
  'set_notification_channel_enabled', 'terminal.session.started', 'terminal.session.ended', 'host_shell.session.started'
]
/** What the contract leaves out of the log and belongs there, each with the reason. */
const ours: Readonly<Record<string, string>> = {
  update_project_sharing: 'every member gets to work in the project',
  set_project_member: 'somebody gets to see the project, or to work in it',
  remove_project_member: 'and no longer',
  transfer_project: 'somebody else owns it from then on',
  update_env_vars: 'what the application runs with',
  update_application_webhook: 'the secret that deploys it by a push',
  rollback_application: 'what serves is another version',
  build_application: 'runs code of the repository',
  cancel_deployment: 'somebody stopped a deploy',
  change_password: 'an account is taken over by it',
  update_profile: 'who did it is shown by that name',
  update_alert_preferences: 'somebody is no longer told of failures',
  session_ended: 'somebody is signed out elsewhere',
  enable_plugin: 'what the platform can do changes',
  disable_plugin: 'what the platform can do changes',
  configure_plugin: 'what the platform can do changes',
  reload_plugin: 'other code runs from then on'
}

export const actions: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(verbs).flatMap(([resource, list]) => list.map(verb => [`${verb}_${resource}`, 'the contract']))),
  ...Object.fromEntries(names.map(name => [name, 'the contract'])),
  ...ours
}
