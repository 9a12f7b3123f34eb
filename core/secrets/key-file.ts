import { randomBytes, randomUUID } from 'node:crypto'
import { link, mkdir, open, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isKeyId, type KeySet, parseKey } from './key-source.js'
import { problems } from './problems.js'

const keyFilePath = (directory: string) => join(directory, 'keys.json')

/** The keys in `<directory>/keys.json`, or undefined when there is no such file. */
export async function readKeyFile(directory: string): Promise<KeySet | undefined> {
  const path = keyFilePath(directory)
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (!isErrno(error, 'ENOENT')) throw error
  })
  return text === undefined ? undefined : parseKeyFile(text, path)
}

/** Makes the key file; of several processes that do so at once, all come back with the same keys. */
export async function createKeyFile(directory: string): Promise<KeySet> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const id = `k${randomBytes(4).toString('hex')}`
  const draft = join(directory, `keys.${randomUUID()}.tmp`)
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(
      `${JSON.stringify({ current: id, keys: { [id]: randomBytes(32).toString('hex') } }, null, 2)}\n`
    )
    await file.sync()
  } finally {
    await file.close()
  }
  try {
    // Unlike a rename, a link never replaces what another process has put there meanwhile.
    await link(draft, keyFilePath(directory))
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error
  } finally {
    await unlink(draft)
  }
  await syncDirectory(directory)
  const keys = await readKeyFile(directory)
  if (keys === undefined) throw problems.badFile({ path: keyFilePath(directory) })
  return keys
}

function parseKeyFile(text: string, path: string): KeySet {
  const fail = () => problems.badFile({ path })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw fail()
  }
  if (!isRecord(value) || !isRecord(value.keys) || typeof value.current !== 'string') throw fail()
  const keys = new Map<string, Buffer>()
  for (const [id, hex] of Object.entries(value.keys)) {
    if (!isKeyId(id) || typeof hex !== 'string') throw fail()
    keys.set(id, parseKey(hex, `${path} (${id})`))
  }
  if (!keys.has(value.current)) throw fail()
  return { keys, current: value.current }
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

const isErrno = (error: unknown, code: string) =>
  error instanceof Error && 'code' in error && error.code === code
