import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestClient, type TestKernel, until } from 'busbar/sdk/testing'

interface Run {
  readonly id: string
  readonly status: 'running' | 'succeeded' | 'failed'
  readonly error: string | null
  readonly log: string
  readonly size_bytes: number
  readonly encrypted: boolean
  readonly remote_key: string | null
  readonly started_at: string
  readonly finished_at: string | null
}

export const runsOf = async (admin: TestClient): Promise<Run[]> =>
  (await admin.get('/api/backups')).body as unknown as Run[]

/** The newest run, once it has ended. */
export async function ended(admin: TestClient): Promise<Run> {
  return await until(async () => {
    const [run] = await runsOf(admin)
    return run?.status === 'running' ? undefined : run
  }, 'the backup to end')
}

/** Makes a backup and answers how it went. */
export async function backUp(admin: TestClient): Promise<Run> {
  const { status, body } = await admin.post('/api/backups/run', {})
  if (status !== 202) throw new Error(`no backup: ${status} ${JSON.stringify(body)}`)
  return await ended(admin)
}

export const archivesOf = (k: Pick<TestKernel, 'state'>): string =>
  join(k.state.directory, 'backups', 'platform')

/** Paths of the archives, the oldest first. */
export const archives = async (k: Pick<TestKernel, 'state'>): Promise<string[]> =>
  (await readdir(archivesOf(k)).catch(() => [])).sort().map(name => join(archivesOf(k), name))

/** Makes the recovery key and answers it. */
export async function makeKey(admin: TestClient): Promise<string> {
  const { status, body } = await admin.post('/api/backups/recovery-key', {})
  if (status !== 201) throw new Error(`no key: ${status} ${JSON.stringify(body)}`)
  return body.recovery_key as string
}
