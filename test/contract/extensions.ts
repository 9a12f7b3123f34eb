import type { ContractChannel, ContractOperation } from './contract.js'

type Extension = Omit<ContractOperation, 'method' | 'path' | 'group'> & { readonly reason: string }

/** Operations that the contract does not name, and what they should demand, each with the reason why it exists. */
export const extensions: Readonly<Record<string, Extension>> = {
  'GET /api/asyncapi.json': {
    public: true,
    scope: null,
    session: false,
    admin: false,
    reason: 'what is told live is described as operations are'
  },
  'GET /api/backups/recovery-key': {
    scope: 'read',
    session: true,
    admin: true,
    reason: 'whether there is a key that opens the archives, without showing it'
  },
  'POST /api/backups/recovery-key': {
    scope: null,
    session: true,
    admin: true,
    reason: 'what archives are encrypted to, and what is needed to restore them'
  },
  'POST /api/projects/{projectId}/databases/{databaseId}/backups/{backupId}/check': {
    scope: 'write',
    session: true,
    admin: false,
    pinned: true,
    reason: 'whether a backup is worth something is tried when somebody wants to know'
  },
  'POST /api/projects/{projectId}/applications/{applicationId}/volumes/{volumeId}/backups/{backupId}/check': {
    scope: 'write',
    session: true,
    admin: false,
    pinned: true,
    reason: 'the same of a volume'
  },
  'DELETE /api/projects/{projectId}/applications/{applicationId}/volumes/{volumeId}/backups/{backupId}': {
    scope: null,
    session: true,
    admin: false,
    pinned: true,
    reason: 'backups of volumes take room too, and go as those of databases do'
  },
  'GET /api/projects/{projectId}/orphaned-volume-backups': {
    scope: 'read',
    session: true,
    admin: false,
    pinned: true,
    reason: 'what is kept of deleted volumes; the list of those of databases has none of volumes'
  },
  'DELETE /api/projects/{projectId}/orphaned-volume-backups/{backupId}': {
    scope: null,
    session: true,
    admin: false,
    pinned: true,
    reason: 'what is kept takes room'
  },
  'POST /api/projects/{projectId}/orphaned-volume-backups/{backupId}/restore': {
    scope: null,
    session: true,
    admin: false,
    pinned: true,
    reason: 'what is kept is worth something where the volume is not made again'
  },
  'GET /api/builders': {
    scope: 'read',
    session: true,
    admin: false,
    reason: 'which build types there are, and what a build type that cannot be used here is missing'
  },
  'GET /api/projects/{projectId}/applications/{applicationId}/deployments/{deploymentId}/build-steps': {
    scope: 'read',
    session: true,
    admin: false,
    pinned: true,
    reason: 'where a build is and what took how long, without reading its log'
  },
  'GET /api/projects/{projectId}/applications/{applicationId}/metrics': {
    scope: 'metrics',
    session: true,
    admin: false,
    pinned: true,
    reason: 'what an application used, as the same is told of the machine'
  },
  'GET /api/projects/{projectId}/applications/{applicationId}/deploy-key': {
    scope: 'read',
    session: true,
    admin: false,
    pinned: true,
    reason: 'the key that the host of a repository has to be given'
  },
  'POST /api/projects/{projectId}/applications/{applicationId}/deploy-key': {
    scope: 'write',
    session: true,
    admin: false,
    pinned: true,
    reason: 'repositories are read over SSH by a key of the application alone'
  },
  'DELETE /api/projects/{projectId}/applications/{applicationId}/deploy-key': {
    scope: 'write',
    session: true,
    admin: false,
    pinned: true,
    reason: 'and by it no longer'
  },
  'GET /api/projects/{projectId}/databases/{databaseId}/attachments': {
    scope: 'read',
    session: true,
    admin: false,
    pinned: true,
    reason: 'which applications sign in to a database'
  },
  'PUT /api/projects/{projectId}/databases/{databaseId}/attachments/{applicationId}': {
    scope: 'write',
    session: true,
    admin: false,
    pinned: true,
    reason: 'an application gets the connection of a database by the names that it asks for'
  },
  'DELETE /api/projects/{projectId}/databases/{databaseId}/attachments/{applicationId}': {
    scope: 'write',
    session: true,
    admin: false,
    pinned: true,
    reason: 'and no longer'
  },
  'GET /api/projects/{projectId}/databases/{databaseId}/upgrades': {
    scope: 'read',
    session: true,
    admin: false,
    pinned: true,
    reason: 'how far an upgrade is, and why one has failed'
  },
  'POST /api/projects/{projectId}/databases/{databaseId}/upgrades/confirm': {
    scope: null,
    session: true,
    admin: false,
    pinned: true,
    reason: 'the old volume goes before its time'
  },
  'GET /api/projects/{projectId}/applications/{applicationId}/host-keys': {
    scope: 'read',
    session: true,
    admin: false,
    pinned: true,
    reason: 'which host was met at the first clone, to be compared with what it says of itself'
  },
  'DELETE /api/projects/{projectId}/applications/{applicationId}/host-keys': {
    scope: 'write',
    session: true,
    admin: false,
    pinned: true,
    reason: 'a host that has a new key is believed again'
  },
  'GET /api/projects/{projectId}/applications/{applicationId}/addresses': {
    scope: 'read',
    session: true,
    admin: false,
    pinned: true,
    reason: 'by which address a hostname is found here: the proxy may listen on any port'
  },
  'GET /api/auth/sessions': {
    scope: null,
    session: true,
    admin: false,
    reason: 'users see where they are signed in'
  },
  'DELETE /api/auth/sessions/{sessionId}': {
    scope: null,
    session: true,
    admin: false,
    reason: 'and end a session that is not theirs any more'
  },
  'GET /api/projects/{projectId}/members': {
    scope: 'read',
    session: true,
    admin: false,
    pinned: true,
    reason: 'a project is shared with single people too, to read or to work in it'
  },
  'PUT /api/projects/{projectId}/members': {
    scope: null,
    session: true,
    admin: false,
    pinned: true,
    reason: 'its owner lets one in, or changes what they may do there'
  },
  'DELETE /api/projects/{projectId}/members/{userId}': {
    scope: null,
    session: true,
    admin: false,
    pinned: true,
    reason: 'and takes it back; a member leaves'
  },
  'GET /api/projects/{projectId}/registries': {
    scope: 'read',
    session: true,
    admin: false,
    pinned: true,
    reason: 'which accounts a project pulls private images with'
  },
  'PUT /api/projects/{projectId}/registries': {
    scope: 'write',
    session: true,
    admin: false,
    pinned: true,
    reason:
      'one is set, so that builds begin with bases of a private registry; its password is never answered'
  },
  'DELETE /api/projects/{projectId}/registries/{registryAccountId}': {
    scope: 'write',
    session: true,
    admin: false,
    pinned: true,
    reason: 'and taken away'
  },
  'POST /api/projects/{projectId}/registries/{registryAccountId}/test': {
    scope: 'write',
    session: true,
    admin: false,
    pinned: true,
    reason: 'whether the registry lets it in is known before a deploy fails'
  },
  'GET /api/registries': {
    scope: 'read',
    session: true,
    admin: true,
    pinned: 'never',
    reason: 'the same for all projects, by an admin'
  },
  'PUT /api/registries': {
    scope: 'write',
    session: true,
    admin: true,
    pinned: 'never',
    reason: 'the same for all projects, by an admin'
  },
  'DELETE /api/registries/{registryAccountId}': {
    scope: 'write',
    session: true,
    admin: true,
    pinned: 'never',
    reason: 'the same for all projects, by an admin'
  },
  'POST /api/registries/{registryAccountId}/test': {
    scope: 'write',
    session: true,
    admin: true,
    pinned: 'never',
    reason: 'the same for all projects, by an admin'
  },
  'DELETE /api/notifications/{notificationId}': {
    scope: 'write',
    session: true,
    admin: false,
    pinned: 'filtered',
    reason: 'who does not want to see a notification any more deletes it'
  },
  'GET /api/tokens/{tokenId}/reach': {
    scope: null,
    session: true,
    admin: false,
    reason: 'the owner of a token sees what it could do, and what it did'
  }
}

/** The same of channels. */
export const extensionChannels: Readonly<Record<string, ContractChannel & { readonly reason: string }>> = {
  'channel build-steps:{deploymentId}': {
    name: 'build-steps:{deploymentId}',
    who: 'project access',
    pinned: true,
    reason: 'where a build is, while it goes on'
  }
}

const registryAccount = {
  registry_username: 'images of a private registry are pulled with an account of it',
  registry_password: 'the same; stored sealed and never answered'
}

const startCommand = { start_command: 'what is started instead of the command of the image' }

const buildChoices = {
  build_target: 'which stage of a Dockerfile becomes the image',
  build_platform: 'what kind of machine the image is made for'
}

const myRole = {
  my_role: 'what the caller may do in the project: viewer, editor, owner, or admin of one of others'
}

const backup = {
  encrypted: 'whether the file is encrypted',
  sha256: 'what it may be compared with by hand',
  format: 'how the dump in it is written',
  version: 'what it was made of',
  proof: 'whether it was restored as a proof, when, how long that took and how many rows there were'
}

const backupConfig = {
  time_zone: 'the time zone that the schedules are read in',
  drill_schedule: 'when the newest backup is restored as a proof'
}

const backupConfigAnswer = { ...backupConfig, next_run_at: 'when the next backup is due' }

/** Fields that the contract does not name: by its schema, or by the operation where it has none; each with the reason why it exists. */
export const fields: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  setupRequest: { code: 'the one-time code that a platform open to the network asks for' },
  'GET /api/auth/setup': { code_required: 'whether set-up takes that code' },
  Project: myRole,
  ListProjectsByUserRow: myRole,
  createApplicationRequest: { ...registryAccount, ...startCommand, ...buildChoices },
  updateApplicationRequest: { ...registryAccount, ...startCommand, ...buildChoices },
  changeSourceRequest: { ...registryAccount, ...startCommand, ...buildChoices },
  applicationResponse: {
    ...startCommand,
    ...buildChoices,
    registry_username: registryAccount.registry_username,
    has_registry_credentials: 'tells only whether the password of a registry is stored'
  },
  databaseResponse: {
    status_detail: 'what is being done for it just now, or why it has failed'
  },
  Deployment: {
    kind: 'what the deployment does: deploy, build, reload, rebuild or rollback',
    step: 'where it is, or where it failed',
    waiting_for: 'why its build has not begun yet, while it waits for others or for memory',
    remedy: 'what helps against the failure',
    evidence: 'what was seen of the failure',
    container_port: 'the port that was proven and gets the traffic',
    switch_served: 'proof of the switch: requests that were served during it',
    switch_failed: 'requests that failed during it',
    switch_longest_gap_ms: 'the longest time without an answer during it',
    switch_cut: 'requests still open when the old version was stopped',
    drain_ms: 'how long the old version took to finish its requests',
    old_version_killed: 'whether the old version had to be killed because it ignored SIGTERM',
    build_engine: 'what has carried out the commands of its build'
  },
  'POST /api/projects/{projectId}/applications/{applicationId}/terminal': {
    shell: 'which shell it has become, where another one was asked for'
  },
  DockerDiskUsage: { measured_at: 'how old the figures are: to measure takes too long to be waited for' },
  dockerOwner: { deployment_id: 'the deployment that a container was made for' },
  dockerNetworkResponse: {
    owner: 'the project whose network it is',
    container_count: 'how many containers are connected, where not all are told'
  },
  databaseBackupResponse: backup,
  volumeBackupResponse: backup,
  projectBackupActivityResponse: backup,
  orphanedBackupResponse: backup,
  databaseBackupConfigRequest: backupConfig,
  volumeBackupConfigRequest: backupConfig,
  databaseBackupConfigResponse: backupConfigAnswer,
  volumeBackupConfigResponse: backupConfigAnswer,
  appVolumeBackupConfigResponse: backupConfigAnswer,
  restoreDatabaseRequest: { from_other: 'that it is a backup of another database is intended' },
  'POST /api/projects/{projectId}/applications/{applicationId}/volumes/{volumeId}/backups/{backupId}/restore':
    {
      target_volume_id: 'another volume that it is restored into'
    },
  'POST /api/projects/{projectId}/backup-destinations/test': { error: 'why it does not work' },
  'POST /api/projects/{projectId}/backup-destinations/{destId}/test': { error: 'why it does not work' },
  'POST /api/backups/remote/test': { error: 'why it does not work, and what helps' },
  invitationResponse: {
    link: 'an administrator can hand on the invitation where no mail is sent'
  }
}
