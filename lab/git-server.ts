import { execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** By path: what is in the file, where a symlink leads, or null to remove it. */
export type GitFiles = Readonly<Record<string, string | Buffer | { readonly symlink: string } | null>>

export interface GitServerOptions {
  /** Where the bare repositories are kept; made if it does not exist. */
  readonly root: string
  /** An address of this machine; 127.0.0.1 unless given. */
  readonly host?: string
  /** A free one unless given. */
  readonly port?: number
  /** Basic authentication for every request; none unless given. */
  readonly auth?: { readonly username: string; readonly password: string }
  /** The process may end while it listens. */
  readonly isBackground?: boolean
  /** Sees each request first; true says that it has answered. */
  readonly intercept?: (request: IncomingMessage, response: ServerResponse) => boolean
}

export interface GitServer {
  /** `http://<host>:<port>`, without a slash at the end. */
  readonly url: string
  readonly port: number
  /** Makes `<root>/<name>.git` with one commit on `main` (none without files); its address and the commit. */
  createRepository(name: string, files: GitFiles): Promise<{ readonly url: string; readonly sha: string }>
  /** Commits onto a branch (`main` unless named; made from `main` when it is new); the commit. */
  commit(
    name: string,
    files: GitFiles,
    message: string,
    options?: { readonly branch?: string; readonly author?: string }
  ): Promise<string>
  close(): Promise<void>
}

/** Git over smart HTTP, as a Git hosting service speaks it; pushes work too. */
export async function startGitServer({
  root,
  host = '127.0.0.1',
  port: wantedPort = 0,
  auth,
  isBackground = false,
  intercept
}: GitServerOptions): Promise<GitServer> {
  await mkdir(root, { recursive: true })
  const expected =
    auth === undefined
      ? undefined
      : `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`
  const server = createServer((request, response) => {
    if (intercept?.(request, response) === true) return
    if (expected !== undefined && request.headers.authorization !== expected) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
    } else {
      serve(root, request, response)
    }
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(wantedPort, host, resolve))
  if (isBackground) server.unref()
  const { port } = server.address() as AddressInfo
  const url = `http://${host}:${port}`

  const commit: GitServer['commit'] = async (
    name,
    files,
    message,
    { branch = 'main', author = 'Ada Lovelace' } = {}
  ) => {
    const work = await mkdtemp(join(tmpdir(), 'busbar-git-'))
    try {
      await git(work, 'clone', '--quiet', join(root, `${name}.git`), '.')
      const exists = await git(
        work,
        'rev-parse',
        '--verify',
        '--quiet',
        `refs/remotes/origin/${branch}`
      ).then(
        () => true,
        () => false
      )
      await git(work, 'checkout', '--quiet', '-B', branch, ...(exists ? [`origin/${branch}`] : []))
      await write(work, files)
      await git(work, 'add', '--all', '--force', '.')
      await git(
        work,
        '-c',
        `user.name=${author}`,
        '-c',
        'user.email=author@example.com',
        'commit',
        '--quiet',
        '--allow-empty',
        '-m',
        message
      )
      await git(work, 'push', '--quiet', 'origin', branch)
      return await git(work, 'rev-parse', 'HEAD')
    } finally {
      await rm(work, { recursive: true, force: true })
    }
  }

  return {
    url,
    port,
    commit,
    async createRepository(name, files) {
      await git(root, 'init', '--quiet', '--bare', '--initial-branch=main', `${name}.git`)
      await git(join(root, `${name}.git`), 'config', 'http.receivepack', 'true')
      const sha = Object.keys(files).length === 0 ? '' : await commit(name, files, 'first commit')
      return { url: `${url}/${name}.git`, sha }
    },
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    }
  }
}

async function git(cwd: string, ...args: string[]): Promise<string> {
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: '/nonexistent',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0'
  }
  const { stdout } = await execute('git', args, { cwd, env })
  return stdout.trim()
}

async function write(directory: string, files: GitFiles): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = join(directory, name)
    await mkdir(dirname(path), { recursive: true })
    await rm(path, { recursive: true, force: true })
    if (content === null) continue
    if (typeof content === 'string' || Buffer.isBuffer(content)) await writeFile(path, content)
    else await symlink(content.symlink, path)
  }
}

/** One request through `git http-backend`, a CGI program. */
function serve(root: string, request: IncomingMessage, response: ServerResponse): void {
  const { pathname, search } = new URL(request.url ?? '/', 'http://git')
  const backend = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      REMOTE_USER: 'lab',
      REMOTE_ADDR: '127.0.0.1',
      SERVER_PROTOCOL: 'HTTP/1.1',
      REQUEST_METHOD: request.method,
      PATH_INFO: decodeURIComponent(pathname),
      QUERY_STRING: search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      ...(request.headers['content-length'] === undefined
        ? {}
        : { CONTENT_LENGTH: request.headers['content-length'] })
    },
    stdio: ['pipe', 'pipe', 'ignore']
  })
  request.pipe(backend.stdin)
  backend.stdin.on('error', () => {})
  response.on('close', () => backend.kill())
  let head = Buffer.alloc(0)
  const readHead = (chunk: Buffer): void => {
    head = Buffer.concat([head, chunk])
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) return
    backend.stdout.off('data', readHead)
    const headers = head
      .subarray(0, end)
      .toString()
      .split('\r\n')
      .map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()] as const)
    const status = headers.find(([name]) => name.toLowerCase() === 'status')?.[1] ?? '200'
    response.writeHead(
      Number.parseInt(status, 10),
      Object.fromEntries(headers.filter(([name]) => name.toLowerCase() !== 'status'))
    )
    response.write(head.subarray(end + 4))
    backend.stdout.pipe(response)
  }
  backend.stdout.on('data', readHead)
  backend.on('close', () => {
    if (!response.headersSent) response.writeHead(500).end()
  })
}
