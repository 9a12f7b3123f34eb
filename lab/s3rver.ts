import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'

export const accessKey = 'S3RVER'
export const secretKey = 'S3RVER'
export const bucket = 'backups'

interface S3rver {
  /** With its port. */
  readonly host: string
  /** Names below the bucket, in order. */
  keys(): Promise<string[]>
  /** The folder of the bucket. */
  readonly directory: string
}

/**
 * A store that speaks the protocol of S3, with one bucket, that was written elsewhere: s3rver. It checks no signature, keeps no list of
 * uploads that are under way and gives none up (`s3-server.ts` does), and has no faults on demand.
 */
export async function startS3(t: Test): Promise<S3rver> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-s3-'))
  const port = await freePort()
  const program = join(
    dirname(createRequire(import.meta.url).resolve('s3rver/package.json')),
    'bin',
    's3rver.js'
  )
  const server = spawn(
    process.execPath,
    [
      '--openssl-legacy-provider',
      program,
      '-d',
      directory,
      '-a',
      '127.0.0.1',
      '-p',
      String(port),
      '--configure-bucket',
      bucket,
      '--silent'
    ],
    { stdio: 'ignore' }
  )
  t.teardown(async () => {
    server.kill('SIGKILL')
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit')
    await rm(directory, { recursive: true, force: true })
  })
  const host = `127.0.0.1:${port}`
  await until(
    async () =>
      await fetch(`http://${host}/`).then(
        () => true,
        () => undefined
      ),
    'the store to answer'
  )
  const folder = join(directory, bucket)
  return {
    host,
    directory: folder,
    keys: async () =>
      (await readdir(folder, { recursive: true }))
        .filter(name => name.endsWith('._S3rver_object'))
        .map(name => name.slice(0, -'._S3rver_object'.length))
        .sort()
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
