import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { folder } from './kit.js'

/**
 * Programs that stand in for pack, railpack and nixpacks, which can be had only from the internet. They
 * write down how they were called, and make a real image on the engine with the docker command, or what is to be built elsewhere.
 */
export interface StandIns {
  /** For the platform's PATH. */
  readonly path: string
  /** How a program was called last, or last with this command. */
  called(program: Program, command?: string): Promise<Call>
  /** What they do from now on. */
  behave(behaviour: Behaviour): Promise<void>
}

type Program = 'pack' | 'railpack' | 'nixpacks'
/** `hang`: never ends, and starts others. `none`: ends well without an image. */
type Behaviour = 'build' | 'denied' | 'hang' | 'fail' | 'none' | 'no-buildkit'
interface Call {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** Of those that it has started. */
  readonly pids: readonly number[]
}

const script = `#!/usr/bin/env node
const fs = require('node:fs'), path = require('node:path')
const { spawn, spawnSync } = require('node:child_process')
const program = path.basename(__filename), argv = process.argv.slice(2)
const behaviour = fs.readFileSync(path.join(__dirname, 'behaviour'), 'utf8')
const after = name => argv[argv.indexOf(name) + 1]
const docker = (args, options = {}) => {
  const { status, stderr } = spawnSync('docker', args, { encoding: 'utf8', ...options })
  if (status !== 0) { console.error(stderr); process.exit(9) }
}
const pids = [process.pid]
const file = path.join(__dirname, program + '.json')
const record = () => {
  for (const name of [file, file.replace(/json$/, argv[0] + '.json')]) {
    fs.writeFileSync(name + '.new', JSON.stringify({ argv, env: process.env, cwd: process.cwd(), pids }))
    fs.renameSync(name + '.new', name)
  }
}
const given = () => Object.fromEntries(argv.flatMap((word, at) => argv[at - 1] !== '--env' ? [] : [/^([^=]+)=?([^]*)/.exec(word).slice(1)])
  .map(([name, value]) => [name, value === '' ? process.env[name] : value]))
const variables = () => ({ NIXPACKS_METADATA: 'lab', ...given() })
if (argv[0] === 'plan') {
  record()
  console.error('a word on stderr')
  console.log('Warning: something\\n' + JSON.stringify({ providers: [], variables: variables(), phases: {} }, null, 2))
  process.exit(0)
}
record()
console.log('\\u001b[1m===> BUILDING\\u001b[0m')
console.error('a word on stderr')
if (behaviour === 'fail') { console.error('ERROR: failed to detect: no buildpack fits'); console.log('bye'); process.exit(7) }
if (behaviour === 'denied') { console.error('ERROR: failed to build: failed to fetch builder image registry.example.com/team/builder:1: Head "https://registry.example.com/v2/team/builder/manifests/1": unauthorized: authentication required'); process.exit(1) }
if (behaviour === 'no-buildkit') { console.error('failed to get buildkit information.'); process.exit(1) }
if (behaviour === 'none') process.exit(0)
const [, build, launch] = /name=([^;]+);type=launch;format=volume;name=(.+)/.exec(after('--cache') ?? '') ?? []
// As nixpacks lays it out.
if (program === 'nixpacks' && argv.includes('--out') && behaviour === 'build') {
  const folder = path.join(after('--out'), '.nixpacks'), names = Object.keys(variables())
  const cache = argv.includes('--cache-key') ? '--mount=type=cache,id=' + after('--cache-key') + '-/kept,target=/kept' : ''
  fs.mkdirSync(path.join(folder, 'assets'), { recursive: true })
  fs.writeFileSync(path.join(folder, 'nixpkgs-lab.nix'), '{ }\\n')
  fs.writeFileSync(path.join(folder, 'assets', 'made.txt'), 'made by nixpacks')
  fs.writeFileSync(path.join(folder, 'build.sh'), 'docker build')
  fs.writeFileSync(path.join(folder, 'Dockerfile'), [
    'FROM busybox:lab', 'ENTRYPOINT ["/bin/sh", "-c"]', 'WORKDIR /app/',
    'COPY .nixpacks/nixpkgs-lab.nix .nixpacks/nixpkgs-lab.nix', 'RUN test -f .nixpacks/nixpkgs-lab.nix', 'COPY .nixpacks/assets /assets/',
    'ARG ' + names.join(' '), 'ENV ' + names.map(name => name + '=$' + name).join(' '),
    '# build phase', 'COPY . /app/.', 'RUN ' + cache + ' sh make.sh', '# start', 'COPY . /app', 'CMD ["httpd -f -p 8080"]', ''
  ].join('\\n'))
  process.exit(0)
}
if (argv[0] === 'prepare') {
  fs.writeFileSync(after('--plan-out'), JSON.stringify({ '$schema': 'https://schema.railpack.com', steps: [], secrets: [...Object.keys(given()), ...(fs.existsSync('wants-more') ? ['MORE'] : [])] }))
  process.exit(0)
}
if (behaviour === 'hang') {
  const child = spawn('sleep', ['1000'])
  pids.push(child.pid)
  if (build !== undefined) docker(['run', '-d', '--label', 'author=pack', '-v', build + ':/cache', 'busybox:lab', 'sleep', '1000'])
  record()
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 1000)
} else {
  if (build !== undefined) {
    docker(['run', '--rm', '-v', build + ':/cache', '-v', launch + ':/launch', 'busybox:lab', 'sh', '-c',
      'dd if=/dev/zero of=/cache/x bs=1M count=4; dd if=/dev/zero of=/launch/x bs=1M count=2'])
  }
  const name = program === 'pack' ? argv[1] : after('--name')
  const source = program === 'pack' ? after('--path') : program === 'nixpacks' ? argv[1] : argv.at(-1)
  docker(['build', '-q', '-t', name, '-f', '-', source], { input: 'FROM node:20\\nWORKDIR /workspace\\nCOPY . .\\nENV MADE_BY=' + program + '\\nCMD ["node", "server.js"]\\n', env: { ...process.env, DOCKER_BUILDKIT: '0' } })
}
`

export async function standIns(t: Test): Promise<StandIns> {
  const directory = await folder(t)
  for (const program of ['pack', 'railpack', 'nixpacks']) {
    await writeFile(join(directory, program), script)
    await chmod(join(directory, program), 0o755)
  }
  const behave = async (behaviour: Behaviour): Promise<void> =>
    await writeFile(join(directory, 'behaviour'), behaviour)
  await behave('build')
  return {
    path: `${directory}:${process.env.PATH ?? ''}`,
    called: async (program, command) =>
      JSON.parse(
        await readFile(
          join(directory, `${program}.${command === undefined ? '' : `${command}.`}json`),
          'utf8'
        )
      ) as Call,
    behave
  }
}
