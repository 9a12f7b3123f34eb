import { execFile, spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { bounded } from 'busbar/sdk'
import type { Test } from 'tap'
import { ProgramLines } from './program-lines.js'
import { skipWithout } from './requirements.js'

const run = promisify(execFile)

interface Account {
  readonly username: string
  readonly password: string
}

/** What `docker-registry` keeps, on 127.0.0.1: the engine takes plain HTTP there. */
interface DockerRegistry {
  /** `127.0.0.1:<port>`, the beginning of the names of its images. */
  readonly host: string
  /** Puts an image there without an engine; its digest. */
  push(name: string, tag: string, image: PushedImage): Promise<string>
  /** Before the end of the test. */
  close(): Promise<void>
}

interface PushedImage {
  readonly architecture: string
  /** An uncompressed tar. */
  readonly layer: Buffer
  readonly command: readonly string[]
}

/**
 * Call it first in every test that needs the real registry, as `requireEngine`: without the programs
 * `docker-registry` and `htpasswd` the test is skipped, with `CI=true` it fails.
 */
export async function requireDockerRegistry(t: Pick<Test, 'plan'>): Promise<boolean> {
  const missing: string[] = []
  for (const program of ['docker-registry', 'htpasswd']) {
    await run('which', [program]).catch(() => {
      missing.push(program)
    })
  }
  if (missing.length === 0) return true
  const reason = `${missing.join(' and ')} not found (Debian: apt-get install docker-registry apache2-utils)`
  return skipWithout(t, { what: 'a registry', reason })
}

/** The real registry, for everybody or for one account alone; gone after the test. */
export async function startDockerRegistry(
  t: Pick<Test, 'teardown'>,
  { account, directory }: { readonly account?: Account; readonly directory?: string } = {}
): Promise<DockerRegistry> {
  const folder = await mkdtemp(join(tmpdir(), 'busbar-registry-'))
  const config = [
    'version: 0.1',
    'log: {level: info, accesslog: {disabled: true}}',
    `storage: {filesystem: {rootdirectory: ${directory ?? join(folder, 'data')}}}`,
    'http: {addr: 127.0.0.1:0, secret: lab}'
  ]
  if (account !== undefined) {
    // The registry takes bcrypt alone.
    const { stdout } = await run('htpasswd', ['-Bbn', account.username, account.password])
    await writeFile(join(folder, 'htpasswd'), stdout)
    config.push(`auth: {htpasswd: {realm: lab, path: ${join(folder, 'htpasswd')}}}`)
  }
  await writeFile(join(folder, 'config.yml'), config.join('\n'))
  const program = spawn('docker-registry', ['serve', join(folder, 'config.yml')], {
    stdio: ['ignore', 'ignore', 'pipe']
  })
  const ended = new Promise<void>(resolve => program.once('exit', () => resolve()))
  const close = async (): Promise<void> => {
    program.kill()
    await bounded(async () => await ended, { ms: 30_000, what: 'docker-registry, which was to end,' })
  }
  t.teardown(async () => {
    await close()
    await rm(folder, { recursive: true, force: true })
  })
  const host = await listening(new ProgramLines(program.stderr, 'docker-registry'))
  return {
    host,
    close,
    push: async (name, tag, image) => await push(`http://${host}/v2/${name}`, tag, image, account)
  }
}

async function listening(lines: ProgramLines): Promise<string> {
  const listens = /listening on (127\.0\.0\.1:\d+)/
  const line = await lines.next('where it listens', text => listens.test(text))
  return listens.exec(line)?.[1] ?? ''
}

async function push(
  base: string,
  tag: string,
  { architecture, layer, command }: PushedImage,
  account: Account | undefined
): Promise<string> {
  const authorization: Record<string, string> =
    account === undefined
      ? {}
      : {
          authorization: `Basic ${Buffer.from(`${account.username}:${account.password}`).toString('base64')}`
        }
  const call = async (
    method: string,
    url: string,
    body: Buffer | undefined,
    type: string
  ): Promise<Response> => {
    const answer = await fetch(url, { method, body, headers: { ...authorization, 'content-type': type } })
    if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`)
    return answer
  }
  const upload = async (bytes: Buffer): Promise<{ size: number; digest: string }> => {
    const digest = digestOf(bytes)
    const begun = await call('POST', `${base}/blobs/uploads/`, undefined, 'text/plain')
    const at = new URL(begun.headers.get('location') ?? '', base)
    at.searchParams.set('digest', digest)
    await call('PUT', at.href, bytes, 'application/octet-stream')
    return { size: bytes.length, digest }
  }
  const config = Buffer.from(
    JSON.stringify({
      architecture,
      os: 'linux',
      config: { Cmd: command },
      rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
      history: [{ created_by: randomUUID() }]
    })
  )
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
      config: { mediaType: 'application/vnd.docker.container.image.v1+json', ...(await upload(config)) },
      layers: [{ mediaType: 'application/vnd.docker.image.rootfs.diff.tar', ...(await upload(layer)) }]
    })
  )
  await call(
    'PUT',
    `${base}/manifests/${tag}`,
    manifest,
    'application/vnd.docker.distribution.manifest.v2+json'
  )
  return digestOf(manifest)
}

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
