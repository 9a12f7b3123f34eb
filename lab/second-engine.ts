import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { access, constants, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { instanceLabel } from '../plugins/runtime-docker/labels.js'
import { requireEngine } from './engine.js'
import { removeGroupsOf, secondEngines } from './installation.js'
import { requireRoot, type Skippable, skipWithout } from './requirements.js'

const execute = promisify(execFile)
const readyMs = 60_000
const stopMs = 30_000

export interface SecondEngineOptions {
  /** Containers outlive the engine. */
  readonly liveRestore?: boolean
  /** The engine's disk is of this size, and of memory; without it, it is a folder. */
  readonly diskBytes?: number
  /** With `diskBytes`: so many files and directories fit on it. */
  readonly diskInodes?: number
  /** Copied from the machine's own engine. */
  readonly images?: readonly string[]
  /**
   * A machine of its own, as far as the network goes: interfaces, routes and a packet filter, which it sets as an
   * engine usually does. Its containers are not reached from here.
   */
  readonly ownNetwork?: true
  /** Programs of the machine that neither it nor its containers see; it does without a packet filter. */
  readonly lacks?: readonly string[]
}

/** A Docker Engine of a test's own, which may be killed. */
export interface SecondEngine {
  /** What a platform needs to use it, and it alone. */
  readonly environment: Readonly<Record<string, string>>
  readonly docker: Docker
  /** Where its disk is. */
  readonly dataRoot: string
  /** With `ownNetwork`: runs a program in it, as on the engine's machine; its output. */
  onMachine(program: string, ...args: readonly string[]): Promise<string>
  /** With `ownNetwork`: the same for one that stays; it ends when this process does, or earlier. */
  serveOnMachine(program: string, ...args: readonly string[]): ChildProcess
  /** kill -9 of the engine's process; containers live on or die as they do when that happens. */
  kill(): Promise<void>
  /** After `kill`: resolves when it answers. */
  start(): Promise<void>
  /** Ends it with everything that it runs and has stored. */
  close(): Promise<void>
}

/** As `requireEngine`, for tests that start an engine themselves: that takes root and a `dockerd`. */
export async function requireSecondEngine(t: Skippable): Promise<boolean> {
  if (!(await requireEngine(t))) return false
  if (!requireRoot(t, 'starts a second Docker Engine')) return false
  if (await isInPath('dockerd')) return true
  return skipWithout(t, {
    what: 'dockerd',
    reason: 'there is no dockerd in the PATH (Debian: apt-get install docker.io)'
  })
}

async function isInPath(program: string): Promise<boolean> {
  const folders = (process.env.PATH ?? '').split(':')
  const found = await Promise.all(
    folders.map(
      async folder =>
        await access(join(folder, program), constants.X_OK).then(
          () => true,
          () => false
        )
    )
  )
  return found.includes(true)
}

/**
 * Starts an engine beside the machine's own. Without `ownNetwork` the two share the network of the machine, so this one gets a default
 * bridge of its own (one without any takes away the other's, docker0, when it starts) and leaves the packet
 * filter alone: its containers are reached from the machine, and that is all.
 */
export async function startSecondEngine(options: SecondEngineOptions = {}): Promise<SecondEngine> {
  const root = await mkdtemp(join(tmpdir(), 'busbar-engine-'))
  const dataRoot = join(root, 'data')
  const socket = join(root, 'docker.sock')
  const bridge = `bbr-${randomBytes(4).toString('hex')}`
  const docker = new Docker({ socketPath: socket })
  let running: ChildProcess | undefined
  await mkdir(dataRoot)
  if (options.diskBytes !== undefined)
    await execute('mount', ['-t', 'tmpfs', '-o', diskOptions(options), 'tmpfs', dataRoot])

  const namespace = options.ownNetwork === true ? bridge : undefined
  if (namespace === undefined) {
    await execute('ip', ['link', 'add', bridge, 'type', 'bridge'])
    await execute('ip', ['address', 'add', `10.230.${randomInt(256)}.1/24`, 'dev', bridge])
    await execute('ip', ['link', 'set', bridge, 'up'])
  } else {
    await execute('ip', ['netns', 'add', namespace])
    await execute('ip', ['-n', namespace, 'link', 'set', 'lo', 'up'])
  }
  // Not `ip netns exec`, which mounts /sys anew and loses the control groups.
  const enter = namespace === undefined ? [] : ['nsenter', `--net=/run/netns/${namespace}`]
  const hidden = options.lacks ?? []
  const hide =
    hidden.length === 0
      ? []
      : [
          'unshare',
          '--mount',
          'sh',
          '-c',
          'for path in $HIDDEN; do mount --bind /dev/null "$path"; done; exec "$@"',
          'sh'
        ]
  const isOnMachine = (): void => {
    if (namespace === undefined) throw new Error('this engine has no network of its own')
  }

  const start = async (): Promise<void> => {
    // Ended by a signal when this process dies, as no other process knows of it.
    const child = spawn(
      'setpriv',
      [
        '--pdeathsig',
        'TERM',
        ...enter,
        ...hide,
        'dockerd',
        '--data-root',
        dataRoot,
        '--exec-root',
        join(root, 'exec'),
        '--pidfile',
        join(root, 'pid'),
        '-H',
        `unix://${socket}`,
        ...(namespace === undefined
          ? [`--bridge=${bridge}`, '--iptables=false', '--ip-forward=false', '--ip-masq=false']
          : []),
        '--shutdown-timeout=5',
        ...(hidden.length > 0 && namespace !== undefined ? ['--iptables=false'] : []),
        ...(options.liveRestore === true ? ['--live-restore'] : [])
      ],
      { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, HIDDEN: hidden.join(' ') } }
    )
    const output = createWriteStream(join(root, 'log'), { flags: 'a' })
    child.stdout.pipe(output, { end: false })
    child.stderr.pipe(output, { end: false })
    running = child
    const end = Date.now() + readyMs
    while (
      !(await docker.ping().then(
        () => true,
        () => false
      ))
    ) {
      if (child.exitCode !== null || child.signalCode !== null || Date.now() > end) {
        throw new Error(
          `the second engine does not answer: ${(await readFile(join(root, 'log'), 'utf8')).slice(-2000)}`
        )
      }
      await sleep(20)
    }
  }

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const child = running
    running = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    const late = setTimeout(() => child.kill('SIGKILL'), stopMs)
    await exited
    clearTimeout(late)
  }

  const close = async (): Promise<void> => {
    if (running === undefined) await start().catch(() => {})
    const containers = await docker.listContainers({ all: true }).catch(() => [])
    const networks = await docker.listNetworks({ filters: { type: ['custom'] } }).catch(() => [])
    for (const { Id } of containers) {
      await docker
        .getContainer(Id)
        .remove({ force: true, v: true })
        .catch(() => {})
    }
    // Their bridges are interfaces of the machine.
    for (const { Id } of networks)
      await docker
        .getNetwork(Id)
        .remove()
        .catch(() => {})
    secondEngines.delete(docker)
    await end('SIGTERM')
    await endProcessesOf(root)
    // Control groups are directories of the machine, whichever engine has made them.
    const owners = [...containers, ...networks].flatMap(({ Labels }) => Labels?.[instanceLabel] ?? [])
    for (const instanceId of new Set(owners)) await removeGroupsOf(instanceId)
    await execute(
      'ip',
      namespace === undefined ? ['link', 'delete', bridge] : ['netns', 'delete', namespace]
    ).catch(() => {})
    for (const path of (await mountsBelow(root)).reverse())
      await execute('umount', ['--lazy', path]).catch(() => {})
    await rm(root, { recursive: true, force: true })
  }

  try {
    await start()
    secondEngines.add(docker)
    for (const image of options.images ?? []) await copyImage(image, docker)
  } catch (error) {
    await close()
    throw error
  }
  return {
    environment: { DOCKER_HOST: `unix://${socket}`, BUSBAR_SUBNETS: '10.231.0.0/16' },
    docker,
    dataRoot,
    async onMachine(program, ...args) {
      isOnMachine()
      return (await execute('nsenter', [`--net=/run/netns/${namespace ?? ''}`, program, ...args])).stdout
    },
    serveOnMachine(program, ...args) {
      isOnMachine()
      return spawn('setpriv', ['--pdeathsig', 'TERM', ...enter, program, ...args], {
        stdio: ['pipe', 'pipe', 'inherit']
      })
    },
    async kill() {
      const part = await readFile(join(root, 'exec', 'containerd', 'containerd.pid'), 'utf8').catch(() => '')
      await end('SIGKILL')
      // It dies with the engine, which would take what is left of it for a living one.
      if (part === '') return
      const isGone = async (): Promise<boolean> =>
        await access(`/proc/${part.trim()}`).then(
          () => false,
          () => true
        )
      await until(isGone, 'containerd has ended with the engine')
    },
    start,
    close
  }
}

const diskOptions = ({ diskBytes, diskInodes }: SecondEngineOptions): string =>
  `size=${diskBytes}${diskInodes === undefined ? '' : `,nr_inodes=${diskInodes}`}`

async function copyImage(name: string, to: Docker): Promise<void> {
  const loading = await to.loadImage(await new Docker().getImage(name).get())
  let last = ''
  for await (const chunk of loading) last = String(chunk)
  await to
    .getImage(name)
    .inspect()
    .catch((error: unknown) => {
      throw new Error(`${name} was not copied: ${last}`, { cause: error })
    })
}

/** What a killed engine has left running, told by its folder in their arguments. */
async function endProcessesOf(root: string): Promise<void> {
  for (const pid of (await readdir('/proc')).filter(name => /^\d+$/.test(name))) {
    const argv = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (!argv.includes(`${root}/`) || Number(pid) === process.pid) continue
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended meanwhile.
    }
  }
}

const mountsBelow = async (root: string): Promise<string[]> =>
  (await readFile('/proc/self/mounts', 'utf8'))
    .split('\n')
    .flatMap(line => line.split(' ')[1] ?? [])
    .filter(path => path.startsWith(`${root}/`))
