import { type HappyCalls, until } from 'busbar/sdk/testing'
import { runsOf } from './kit.js'

/** A host under `.invalid` is never found. */
const remote = {
  enabled: false,
  endpoint: 's3.invalid',
  region: 'us-east-1',
  bucket: 'backups',
  prefix: 'busbar/',
  use_ssl: true,
  access_key: 'AKIDOFTHEBUCKET',
  secret_key: 'correct horse battery staple'
}

export const happyCalls: HappyCalls = {
  'POST /api/backups/run': async ({ admin }) => {
    await until(
      async () => (await runsOf(admin)).every(({ status }) => status !== 'running'),
      'the backup before to end'
    )
    return {}
  },
  'PUT /api/backups/remote': () => ({ body: remote }),
  'POST /api/backups/test': () => ({ expect: 400 }),
  'POST /api/backups/remote/test': () => ({ body: remote }),
  'POST /api/backups/recovery-key': () => ({ body: { replace: true } })
}
