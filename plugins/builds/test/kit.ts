import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import type { Test } from 'tap'
import { systemClock } from '../../../core/clock/clock.js'
import { createExec } from '../../../core/exec/exec.js'
import { createRedactor } from '../../../core/log/redactor.js'
import { type GitServer, type GitServerOptions, startGitServer } from '../../../lab/git-server.js'
import type { BuildLogLine, PreparationContext } from '../api.js'
import { EngineKinds, ownKinds } from '../engines/engine-kinds.js'
import type { GitContext } from '../git/git-source.js'

export const clock = systemClock()
export const log = pino({ level: 'silent' })

/** A folder of the test's own, removed after it. */
export async function folder(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-builds-'))
  t.teardown(async () => await rm(directory, { recursive: true, force: true }))
  return directory
}

export function processes(t: Test) {
  const exec = createExec({ log })
  t.teardown(async () => await exec.close())
  return exec
}

const redactor = createRedactor()

export async function gitServer(t: Test, options: Omit<GitServerOptions, 'root'> = {}): Promise<GitServer> {
  const server = await startGitServer({ root: join(await folder(t), 'repositories'), ...options })
  t.teardown(async () => await server.close())
  return server
}

/** A key and a certificate that nobody vouches for, in one text. */
export function selfSigned(): string {
  const request = 'req -x509 -newkey rsa:2048 -nodes -keyout - -out - -days 2 -subj /CN=lab'
  return execFileSync('openssl', request.split(' '), { stdio: ['ignore', 'pipe', 'ignore'] }).toString()
}

/** From here to the end of the test this process takes such a certificate, as it takes those of the world. */
export function trustEverybody(t: Test): void {
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  t.teardown(() => {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
  })
}

/** A build context that keeps its log. */
export function recorder(
  signal: AbortSignal = new AbortController().signal
): GitContext & Pick<PreparationContext, 'secrets'> & { readonly lines: BuildLogLine[]; text(): string } {
  const lines: BuildLogLine[] = []
  const secrets = redactor.scope()
  return {
    lines,
    signal,
    secrets,
    clean: secrets.clean,
    log: line => {
      lines.push({ ...line, msg: secrets.clean(line.msg) })
    },
    text: () => lines.map(({ msg }) => msg).join('\n')
  }
}

/** Each answers the id of what it wrote. */
interface RawGit {
  blob(content: string | Buffer): string
  tree(entries: ReadonlyArray<readonly [mode: string, id: string, name: string | Buffer]>): string
}

/** A repository made from trees that no work tree could hold. */
export async function rawRepository(t: Test, make: (git: RawGit) => string): Promise<string> {
  const root = await folder(t)
  const server = await startGitServer({ root })
  t.teardown(async () => await server.close())
  const { url } = await server.createRepository('raw', {})
  const run = (args: string[], input: string | Buffer): string =>
    execFileSync('git', ['-C', join(root, 'raw.git'), '-c', 'user.name=x', '-c', 'user.email=x@x', ...args], {
      input
    })
      .toString()
      .trim()
  const tree = make({
    blob: content => run(['hash-object', '-w', '--stdin'], content),
    tree: entries =>
      run(
        ['hash-object', '-w', '-t', 'tree', '--literally', '--stdin'],
        Buffer.concat(
          entries.map(([mode, id, name]) =>
            Buffer.concat([
              Buffer.from(`${mode} `),
              Buffer.from(name),
              Buffer.from([0]),
              Buffer.from(id, 'hex')
            ])
          )
        )
      )
  })
  run(['update-ref', 'refs/heads/main', run(['commit-tree', tree, '-m', 'raw'], '')], '')
  return url
}

/** The kinds of build engines that builds brings along. */
export const ownEngineKinds = (images = { buildkit_image: 'moby/buildkit:x', dockerd_image: 'docker:x' }) =>
  new EngineKinds({
    entries: () => ownKinds(images).map(value => ({ key: value.program.kind, plugin: 'builds', value }))
  })
