import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { engineTest, startLab } from '../../runtime-docker/test/lab.js'
import { chooseFiles, contextDockerfile, packFiles } from '../context/build-context.js'
import { folder, processes } from './kit.js'

/** Each built with the docker command, which reads the file itself, and with a context of ours. */
const ignoreFiles: Readonly<Record<string, string>> = {
  none: '',
  ordinary:
    '# comment\n\n.git\nnode_modules\n**/*.log\n!keep.log\n*.md\n!README*.md\nREADME-secret.md\ndist/\n/docs/\n',
  allowList: '*\n!src\n!package.json\nsrc/**/*.test.ts\n',
  withItself: 'Dockerfile\n.dockerignore\nsrc\n',
  windows: '\uFEFFnode_modules\r\n  docs  \r\n\\[x\\].ts\r\n',
  signs: 'src/[a-b].ts\nsrc/?.js\na b\n**deep\ndocs/**/c\n./dist//app.js\nv1.0*\n(x)\n',
  order: 'src/a.ts\n!src\ndocs\n!docs/deep/keep\n!docs/d?ep/c\n',
  everything: '**\n!**/keep.log\n'
}

const files = [
  '.git/config',
  'README.md',
  'README-secret.md',
  'CHANGES.md',
  'package.json',
  'keep.log',
  'x.log',
  'a b',
  '(x)',
  'v1.0+x',
  '[x].ts',
  'line\nbreak',
  'src/a.ts',
  'src/b.ts',
  'src/c.ts',
  'src/a.js',
  'src/ab.js',
  'src/x/a.test.ts',
  'src/x/keep.log',
  'src/x.log',
  'src/é.ts',
  'node_modules/p/index.js',
  'src/node_modules/q',
  'dist/app.js',
  'docs/a.md',
  'docs/deep/keep',
  'docs/deep/c',
  'docs/deep/d',
  'docs/b/deep',
  'undeep'
]

const dockerfile = `FROM busybox:lab
COPY . /context
RUN cd /context && find . -print0 | tr '\\n\\0' '|\\n' | sort | sed 's/^/found /'
`

const found = (lines: readonly string[]): string[] => lines.filter(line => line.startsWith('found ./'))

engineTest('what arrives in a build is what the docker command would send', async t => {
  const lab = startLab(t)
  const exec = processes(t)
  for (const [name, text] of Object.entries(ignoreFiles)) {
    const directory = await tree(t)
    await writeFile(join(directory, '.dockerignore'), text)
    const { stdout, stderr, exitCode } = await exec.run(
      [
        'docker',
        'build',
        '--no-cache',
        '--force-rm',
        '--label',
        `busbar-image-instance=${lab.instanceId}`,
        '.'
      ],
      {
        cwd: directory,
        timeoutMs: 120_000,
        env: {
          DOCKER_BUILDKIT: '0',
          ...(process.env.DOCKER_HOST === undefined ? {} : { DOCKER_HOST: process.env.DOCKER_HOST })
        }
      }
    )
    t.equal(exitCode, 0, stderr)
    const expected = found(stdout.split('\n'))

    const lines: string[] = []
    const chosen = await chooseFiles(directory, 'Dockerfile', new AbortController().signal)
    await lab.runtime.build(
      packFiles(directory, chosen, dockerfile),
      {
        tag: `busbar-context-${name.toLowerCase()}:${lab.instanceId.slice(0, 8)}`,
        dockerfile: contextDockerfile,
        buildArgs: {},
        owner: { projectId: lab.projectId },
        memoryBytes: 2 ** 28,
        cpus: 1,
        noCache: true
      },
      { signal: new AbortController().signal, onLine: line => lines.push(line) }
    )
    // The classic builder of the docker command does not look into ignored directories for what only a wildcard takes in again.
    const isFurther = (line: string) => name === 'everything' && /\/keep\.log$|\/src(\/x)?$/.test(line)
    t.same(
      found(lines).filter(line => !isFurther(line)),
      expected.filter(line => !isFurther(line)),
      name
    )
    t.ok(expected.length > 0 || name === 'everything', `${name}: ${expected.length} files`)
  }
})

engineTest(
  'a link in the context that leads out of it stays a link: nothing of the machine gets into the image',
  async t => {
    const lab = startLab(t)
    const directory = await tree(t)
    const outside = await folder(t)
    await writeFile(join(outside, 'secret'), 'of-the-host')
    await symlink(join(outside, 'secret'), join(directory, 'leak'))
    await symlink('../../../../../../../../../../etc', join(directory, 'etc'))
    await symlink(outside, join(directory, 'folder'))
    const build = async (text: string) => {
      const lines: string[] = []
      const chosen = await chooseFiles(directory, 'Dockerfile', new AbortController().signal)
      const result = await lab.runtime
        .build(
          packFiles(directory, chosen, text),
          {
            tag: `busbar-links:${lab.instanceId.slice(0, 8)}`,
            dockerfile: contextDockerfile,
            buildArgs: {},
            owner: { projectId: lab.projectId },
            memoryBytes: 2 ** 28,
            cpus: 1
          },
          { signal: new AbortController().signal, onLine: line => lines.push(line) }
        )
        .then(
          () => 'built',
          (error: { code?: string }) => error.code
        )
      return { result, text: lines.join('\n') }
    }
    const whole = await build(
      'FROM busybox:lab\nCOPY . /context\nRUN ls -l /context/leak /context/etc; cat /context/leak /context/folder/secret 2>&1 || true\n'
    )
    t.equal(whole.result, 'built')
    t.match(whole.text, `leak -> ${join(outside, 'secret')}`)
    t.notMatch(whole.text, 'of-the-host')
    for (const named of ['leak', 'folder/secret', 'etc/shadow']) {
      const { result, text } = await build(`FROM busybox:lab\nCOPY ${named} /stolen\nRUN cat /stolen\n`)
      t.equal(result, 'E_BUILD_COPY', named)
      t.notMatch(text, /of-the-host|root:/)
    }
    const tar = await buffer(
      packFiles(
        directory,
        await chooseFiles(directory, 'Dockerfile', new AbortController().signal),
        dockerfile
      )
    )
    t.notOk(tar.includes('of-the-host'), 'nor into what is sent to the engine')
  }
)

async function tree(t: Test): Promise<string> {
  const directory = await folder(t)
  for (const path of files) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), 'x')
  }
  await writeFile(join(directory, 'Dockerfile'), dockerfile)
  return directory
}
