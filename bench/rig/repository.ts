import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type GitServer, startGitServer } from '../../lab/git-server.js'
import { execute } from './commands.js'

/** What can be deployed: a page, a health check and a WebSocket. npm runs scripts in the folder of package.json. */
const sample = join(process.cwd(), 'examples/apps/live-node')
const files = ['server.js', 'frames.js', 'package.json'] as const
/** With a step that is only run again when package.json has changed, as the installation of dependencies is. */
const dockerfile = `FROM node:20
WORKDIR /app
COPY package.json ./
RUN node -e "require('node:fs').writeFileSync('installed', 'yes')"
COPY server.js frames.js ./
USER node
EXPOSE 3000
CMD ["node", "server.js"]
`

/** A served repository and a working copy of it. */
export class Repository {
  #version = 0

  private constructor(
    readonly url: string,
    private readonly folder: string,
    private readonly server: GitServer
  ) {}

  static async create(directory: string): Promise<Repository> {
    const server = await startGitServer({ root: join(directory, 'git') })
    const folder = join(directory, 'work')
    const content = await Promise.all(
      files.map(async file => [file, await readFile(join(sample, file), 'utf8')] as const)
    )
    const { url } = await server.createRepository('live', {
      ...Object.fromEntries(content),
      Dockerfile: dockerfile
    })
    await execute('git', ['clone', '--quiet', url, folder])
    return new Repository(url, folder, server)
  }

  /**
   * Commits a new version, without pushing it. A first build with
   * `dependencies` builds their layer anew.
   */
  async commit(dependencies: number): Promise<string> {
    const version = `v${++this.#version}`
    await this.#replace('server.js', /const version = '.*'/, `const version = '${version}'`)
    await this.#replace('package.json', /"version": ".*"/, `"version": "1.0.${dependencies}"`)
    await this.#git(
      '-c',
      'user.name=Ada',
      '-c',
      'user.email=ada@example.com',
      'commit',
      '--quiet',
      '--all',
      '-m',
      version
    )
    return version
  }

  async push(): Promise<void> {
    await this.#git('push', '--quiet', 'origin', 'main')
  }

  async close(): Promise<void> {
    await this.server.close()
  }

  async #replace(file: string, what: RegExp, by: string): Promise<void> {
    const path = join(this.folder, file)
    await writeFile(path, (await readFile(path, 'utf8')).replace(what, by))
  }

  async #git(...args: string[]): Promise<void> {
    await execute('git', args, { cwd: this.folder })
  }
}
