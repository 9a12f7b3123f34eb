import { allow, type RouteDeclarer, reply, statusResponse } from 'busbar/sdk'
import type { PlatformBackups } from './platform-backups.js'
import { problems } from './problems.js'
import {
  newRecoveryKey,
  recoveryKey,
  recoveryKeyBody,
  remoteAnswer,
  remoteBody,
  remoteTrial,
  run,
  status
} from './schemas.js'

const group = 'Backups (Admin)'
const admin = { role: 'admin', project: 'none' } as const
const page = { fallback: 20, max: 200 }
/** A store is asked by the platform, and may keep it waiting. */
const trialLimit = { max: 10, windowSeconds: 60 }
const trialMs = 100_000

export function routes(route: RouteDeclarer<PlatformBackups>) {
  runRoutes(route)
  remoteRoutes(route)
  recoveryKeyRoutes(route)
}

function runRoutes(route: RouteDeclarer<PlatformBackups>) {
  route.list({
    url: '/api/backups',
    group,
    operationId: 'ListBackupRuns',
    summary: 'Get Runs',
    description:
      'Backups of the platform itself, the newest first: its database, files and keys. Those of databases and volumes are lists of their projects.',
    access: allow.token('read', admin),
    items: run,
    page,
    handler: async ({ page: asked }, { runs }) => await runs.list(asked)
  })
  route({
    method: 'GET',
    url: '/api/backups/status',
    group,
    operationId: 'GetBackupStatus',
    summary: 'Get Remote Status',
    description: 'How the last backup went, and what becomes of the next one.',
    access: allow.token('read', admin),
    schema: { response: { 200: status } },
    handler: async (_request, { runs }) => await runs.status()
  })
  route({
    method: 'POST',
    url: '/api/backups/run',
    group,
    operationId: 'TriggerBackupRun',
    summary: 'Trigger Run',
    description:
      'Makes a backup now, in the background: one archive of the database as it is at one moment, of the files, and of the keys where there is a recovery key. It is uploaded where a remote is enabled.',
    problems: [problems.busy],
    idempotent: true,
    access: allow.token('write', admin),
    schema: { response: { 202: statusResponse } },
    audit: { action: 'backup_triggered', resource: 'platform' },
    handler: async (_request, { runs }) => {
      await runs.begin()
      return reply(202, { status: 'queued' })
    }
  })
}

function remoteRoutes(route: RouteDeclarer<PlatformBackups>) {
  route({
    method: 'PUT',
    url: '/api/backups/remote',
    group,
    operationId: 'UpdateBackupRemote',
    summary: 'Update Remote',
    description:
      'Says where archives are uploaded to, a bucket of a store that speaks the protocol of S3. It beats the environment. The next run uses it. Another host, or one without TLS, asks for both keys again.',
    problems: [
      problems.bucketMissing,
      problems.endpointInvalid,
      problems.keysMissing,
      problems.keysAgain,
      problems.secretUnreadable
    ],
    access: allow.token('write', admin),
    schema: { body: remoteBody, response: { 200: remoteAnswer } },
    audit: { action: 'update_backup_remote', resource: 'platform' },
    handler: async ({ body }, { remotes }) => ({ remote: await remotes.update(body), status: 'updated' })
  })
  route({
    method: 'POST',
    url: '/api/backups/test',
    group,
    operationId: 'TestBackupRemote',
    summary: 'Test Remote',
    description: 'Asks the store whether the bucket is there and lets the stored keys in.',
    problems: [problems.remoteOff, problems.remoteFailed, problems.secretUnreadable],
    access: allow.token('write', admin),
    schema: { response: { 200: statusResponse } },
    limit: trialLimit,
    timeoutMs: trialMs,
    audit: { action: 'test_backup_remote', resource: 'platform' },
    handler: async ({ signal }, { remotes }) => {
      await remotes.test(signal)
      return { status: 'ok' }
    }
  })
  route({
    method: 'POST',
    url: '/api/backups/remote/test',
    group,
    operationId: 'TestBackupRemoteParams',
    summary: 'Test Remote Parameters',
    description:
      'The same for settings that are not saved: what is left out is taken from those that are. Nothing is changed.',
    problems: [problems.endpointInvalid, problems.keysAgain, problems.secretUnreadable],
    access: allow.token('write', admin),
    schema: { body: remoteBody, response: { 200: remoteTrial } },
    limit: trialLimit,
    timeoutMs: trialMs,
    audit: { action: 'test_backup_remote', resource: 'platform' },
    handler: async ({ body, signal }, { remotes }) => await remotes.try(body, signal)
  })
}

function recoveryKeyRoutes(route: RouteDeclarer<PlatformBackups>) {
  route({
    method: 'GET',
    url: '/api/backups/recovery-key',
    group,
    operationId: 'GetRecoveryKey',
    summary: 'Get Recovery Key',
    description:
      'Whether there is a recovery key, and what is encrypted to it. The key itself is in no answer.',
    access: allow.token('read', admin),
    schema: { response: { 200: recoveryKey } },
    handler: async (_request, { keys }) => await keys.current()
  })
  route({
    method: 'POST',
    url: '/api/backups/recovery-key',
    group,
    operationId: 'CreateRecoveryKey',
    summary: 'Create Recovery Key',
    description:
      'Makes the key that archives are encrypted to from now on, with the keys of the installation in them. The answer has it, this once: it is kept nowhere. Whoever has it and an archive has everything, and whoever restores needs it.',
    problems: [problems.recoveryKeyExists],
    access: allow.session(admin),
    schema: { body: recoveryKeyBody, response: { 201: newRecoveryKey } },
    audit: { action: 'create_recovery_key', resource: 'platform' },
    handler: async ({ body }, { keys }) =>
      reply(201, await keys.create(body), { headers: { 'cache-control': 'no-store' } })
  })
}
