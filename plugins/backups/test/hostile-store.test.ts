import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { StorageError } from '../api.js'
import { LocalStorage } from '../destinations/local-storage.js'
import { S3Storage } from '../destinations/s3-storage.js'

const signal = new AbortController().signal
const chunk = Buffer.alloc(256 * 1024, '<a>')
/** What a store may give before it is cut off, with what buffers on the way hold. */
const mostTaken = 40 * 1024 * 1024
const given = 200 * 1024 * 1024

interface HostileStore {
  readonly storage: S3Storage
  /** Bytes of all answers that were written until somebody ended the connection. */
  written(): number
}

/** A store of a tenant's own, which answers as it likes. */
async function startStore(
  t: Test,
  answer: (request: IncomingMessage, response: ServerResponse, flood: () => void) => void
): Promise<HostileStore> {
  let written = 0
  const server = createServer((request, response) => {
    request.resume()
    request.once('end', () => {
      answer(request, response, () => {
        const more = (): void => {
          while (written < given && !response.destroyed) {
            written += chunk.length
            if (!response.write(chunk)) {
              response.once('drain', more)
              return
            }
          }
          response.destroy()
        }
        more()
      })
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const storage = new S3Storage({
    endpoint: `127.0.0.1:${port}`,
    region: 'us-east-1',
    bucket: 'backups',
    useSsl: false,
    accessKey: 'AKIDOFTHETEST',
    secretKey: 'correct horse battery staple'
  })
  return { storage, written: () => written }
}

async function* single(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

test(
  'an answer of a store that does not end is cut off, whatever was asked',
  { timeout: 240_000 },
  async t => {
    const small = (): AsyncGenerator<Buffer> => single(Buffer.alloc(10))
    const large = (): AsyncGenerator<Buffer> => single(Buffer.alloc(40 * 1024 * 1024))
    const asked: ReadonlyArray<readonly [string, number, (storage: S3Storage) => Promise<unknown>]> = [
      ['what is stored', 200, async storage => await storage.put('key', small(), { signal })],
      ['what is stored in parts', 200, async storage => await storage.put('key', large(), { signal })],
      ['what is refused', 403, async storage => await storage.put('key', small(), { signal })],
      ['what is removed', 200, async storage => await storage.remove('key', { signal })],
      [
        'what is read and refused',
        403,
        async storage => {
          for await (const piece of await storage.get('key', { signal })) void piece
        }
      ]
    ]
    for (const [what, status, ask] of asked) {
      const { storage, written } = await startStore(t, (_request, response, flood) => {
        response.writeHead(status, { 'content-type': 'application/xml' })
        flood()
      })
      await ask(storage).catch((error: unknown) => {
        t.ok(error instanceof StorageError, `${what}: in words: ${String(error)}`)
      })
      t.ok(written() < mostTaken, `${what}: ${written()} bytes were taken`)
    }
  }
)

test('a folder that something is in the way of is told in words', async t => {
  const root = await mkdtemp(join(tmpdir(), 'busbar-way-'))
  t.teardown(async () => await rm(root, { recursive: true, force: true }))
  await writeFile(join(root, 'file'), '')
  await symlink('loop', join(root, 'loop'))
  await mkdir(join(root, 'taken', 'key'), { recursive: true })
  for (const folder of ['file', 'file/below', 'loop']) {
    const storage = new LocalStorage(join(root, folder))
    await t.rejects(storage.test({ signal }), { name: 'StorageError' }, folder)
    await t.rejects(
      storage.put('key', single(Buffer.alloc(10)), { signal }),
      { name: 'StorageError' },
      folder
    )
    await t.rejects(storage.size('key', { signal }), { name: 'StorageError' }, folder)
  }
  const taken = new LocalStorage(join(root, 'taken'))
  await t.rejects(taken.put('key', single(Buffer.alloc(10)), { signal }), { name: 'StorageError' })
  const long = new LocalStorage(root).put('a'.repeat(300), single(Buffer.alloc(10)), { signal })
  await t.rejects(long, { name: 'StorageError', message: /too long/ })
})
