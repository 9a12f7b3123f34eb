import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine } from '../../deployments/test/deploy-lab.js'
import {
  builders,
  type EngineKind,
  execIn,
  has,
  linesOf,
  openEngineLab,
  port,
  sample,
  settingsOf
} from './engine-lab.js'
import { makeFrontEnd } from './stand-in-front-end.js'
import { standIns } from './stand-ins.js'
import { withVariables } from './tool-lab.js'

const memoryMib = 256

/** Connections of a step to itself, in which as much waits as they take, and how much that is. */
const manyConnections = 10_000
const bytesOfEach = 64 * 1024
/** Each has some kilobytes for each direction, whatever the limit is. */
const mostMib = memoryMib + (manyConnections * 24 * 1024) / 2 ** 20
const crowd = `
const net = require('node:net')
if (process.argv[2] === 'listen') net.createServer({ pauseOnConnect: true }, () => {}).listen(7000, '127.0.0.1', 16384)
else {
  const open = new Set()
  const begin = () => {
    const socket = net.connect(7000, '127.0.0.1')
    socket.on('error', () => {}).on('close', () => open.delete(socket))
    socket.on('connect', () => { open.add(socket); for (let sent = 0; sent < ${bytesOfEach}; sent += 4096) socket.write(piece) })
  }
  const piece = Buffer.alloc(4096)
  let begun = 0
  const more = setInterval(() => { for (let i = 0; i < 200 && begun < ${manyConnections}; i++, begun++) begin() }, 20)
  let last = -1
  setInterval(() => {
    let waiting = 0
    for (const { bytesWritten, writableLength } of open) waiting += bytesWritten - writableLength
    if (begun < ${manyConnections} || waiting !== last) { last = waiting; return }
    console.log('in ' + open.size + ' connections wait ' + Math.round(waiting / 2 ** 20) + ' MiB')
    process.exit(0)
  }, 1000)
}
`

/** How many the machine knows, in all its networks. */
const neighbours = async (): Promise<number> => {
  const [, first = ''] = (await readFile('/proc/net/stat/arp_cache', 'utf8')).split('\n')
  return Number.parseInt(first.split(' ')[0] ?? '', 16)
}

/** What builds of strangers do to the machine and to one another. */
export function testHostileBuilds(name: string, kind: EngineKind): void {
  void test(`${name}, and builds that mean harm`, async t => {
    if (!(await requireEngine(t))) return
    const lab = await openEngineLab(t, kind, { memory_mib: memoryMib, concurrent: 2 })

    await t.test(
      'what waits in ten thousand connections of a step counts as its memory, and others go on',
      async t => {
        const neighbour = await lab.otherProject('neighbour', sample('neighbour'))
        const crowded = await lab.application('crowded', {
          ...sample('crowded'),
          'crowd.cjs': crowd,
          Dockerfile: `FROM node:20 AS crowd
COPY crowd.cjs /
RUN node /crowd.cjs listen & sleep 1; timeout 60 node /crowd.cjs fill && touch /done
FROM busybox:lab
COPY --from=crowd /done /
WORKDIR /app
COPY . .
${port}`
        })
        const { id } = await crowded.deploy()
        const beside = await neighbour.deployed()
        t.equal(beside.status, 'success', JSON.stringify(beside.error_message))
        t.equal(await (await fetch((await neighbour.read()).direct_url)).text(), 'neighbour')
        const ended = await crowded.ended(id)
        const said = linesOf(ended).find(line => line.includes('connections wait'))
        if (/exit code 137/.test(ended.error_message ?? '')) return
        t.ok(Number(/wait (\d+) MiB/.exec(said ?? '')?.[1]) <= mostMib, said ?? linesOf(ended).join('\n'))
      }
    )

    await t.test('steps that ask for every address leave others room in the table of neighbours', async t => {
      const asking = `node -e 'for (let at = 2; at < 127; at++) require("net").connect(1, "192.0.2." + at).on("error", () => {}); setTimeout(() => process.exit(0), 4000)'`
      const stages = [1, 2, 3, 4, 5, 6]
      const application = await lab.application('asking', {
        ...sample('asking'),
        Dockerfile: `${stages.map(at => `FROM node:20 AS s${at}\nRUN echo ${at} > /out; ${asking}\n`).join('')}FROM busybox:lab
${stages.map(at => `COPY --from=s${at} /out /out${at}\n`).join('')}${port}`
      })
      const before = await neighbours()
      const { id } = await application.deploy()
      let most = 0
      let isOver = false
      const ended = application.ended(id).finally(() => {
        isOver = true
      })
      await until(
        async () => {
          most = Math.max(most, await neighbours())
          return isOver
        },
        'the build has ended',
        180_000
      )
      t.equal((await ended).status, 'success')
      // Each has an entry for each address of the network of steps.
      t.ok(most - before < stages.length * 60, `${before}, and ${most} then`)
    })
  })
}

/** What a build cannot take from others, nor have others do for it. */
export function testForeignNames(name: string, kind: EngineKind): void {
  void test(`${name}, and names of what is none of a build's`, async t => {
    if (!(await requireEngine(t))) return
    const lab = await openEngineLab(t, kind)

    await t.test('a cache mount of another project has the same name, and nothing else', async t => {
      const mounting = (command: string, version: string) => ({
        ...sample(version),
        Dockerfile: `# syntax=docker/dockerfile:1
FROM busybox:lab
WORKDIR /app
COPY . .
RUN --mount=type=cache,id=shared,target=/kept ${command}
${port}`
      })
      const own = await lab.application('keeper', mounting('echo mine > /kept/own && ls /kept', 'one'))
      t.equal((await own.deployed()).status, 'success')
      const other = await lab.otherProject(
        'thief',
        mounting('echo "found $(ls -A /kept | wc -l)"; echo theirs > /kept/own; rm -rf /kept/*', 'one')
      )
      const taken = await other.deployed()
      t.equal(taken.status, 'success', JSON.stringify(taken.error_message))
      t.ok(has(linesOf(taken), /^found 0$/), linesOf(taken).join('\n'))
      await own.push(mounting('echo "kept $(cat /kept/own)"', 'two'))
      const again = await own.deployed()
      t.equal(again.status, 'success', JSON.stringify(again.error_message))
      t.ok(has(linesOf(again), /^kept mine$/), linesOf(again).join('\n'))
    })

    await t.test('a front-end that a Dockerfile or a variable names does not read it', async t => {
      const frontEnd = `busbar-front-end-${randomBytes(4).toString('hex')}:test`
      await makeFrontEnd(t, frontEnd)
      const application = await lab.application('led', {
        ...sample('led'),
        'front-end.Dockerfile': 'FROM busybox:lab\nRUN echo the front-end has read this; exit 1\n',
        Dockerfile: `# syntax=${frontEnd}\nARG BUILDKIT_SYNTAX=${frontEnd}\n${sample('led').Dockerfile}`
      })
      const put = await (await lab.k.as.session()).put(`${application.path}/env`, {
        vars: [{ key: 'BUILDKIT_SYNTAX', value: frontEnd, is_secret: false }]
      })
      t.equal(put.status, 200)
      const deployed = await application.deployed()
      t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
      t.ok(has(linesOf(deployed), /^The front-end busbar-front-end-.* is not used/))
      t.notOk(has(linesOf(deployed), /the front-end has read this/))
    })

    await t.test('a base that no build uses goes when it is more than a project may keep', async t => {
      const on = (base: string) => ({
        ...sample('based'),
        Dockerfile: `FROM ${base} AS x\nRUN true > /x\nFROM busybox:lab\nCOPY --from=x /x /\nWORKDIR /app\nCOPY . .\n${port}`
      })
      await lab.k.configure('builds', { ...settingsOf(kind), build_cache_mib: 64 })
      const application = await lab.application('based', on('node:20'))
      const hexOf = async (name: string) => (await engine.getImage(name).inspect()).Id.slice('sha256:'.length)
      const [large, small] = [await hexOf('node:20'), await hexOf('busybox:lab')]
      const kept = async () => {
        const [builder] = await builders(lab.projectId)
        return await execIn(builder?.Id ?? '', '', ['ls', `/var/lib/builder/bases/${kind.build_engine}`])
      }
      for (const round of [1, 2]) {
        await application.push({ round: String(round) })
        const deployed = await application.deployed()
        t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
        t.ok(has(linesOf(deployed), /^Giving node:20 to the build engine/), 'it is given anew')
        t.notMatch(await kept(), large)
        t.match(await kept(), small)
      }
      await lab.k.configure('builds', settingsOf(kind))
      for (const isGiven of [true, false]) {
        const deployed = await application.deployed()
        t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
        t.equal(has(linesOf(deployed), /^Giving node:20 to the build engine/), isGiven)
      }
    })
  })
}

/** A front-end, which an operator chooses, says of an image what is not so. */
export function testLyingFrontEnd(name: string, kind: EngineKind): void {
  void test(`${name}, and a front-end that lies`, async t => {
    if (!(await requireEngine(t))) return
    const tools = await standIns(t)
    const lab = await openEngineLab(t, kind, {}, { PATH: tools.path })
    const named = `busbar-front-end-${randomBytes(4).toString('hex')}`
    const files = (frontEnd: string) => ({
      'index.html': 'built',
      'front-end.Dockerfile': `FROM ${frontEnd}\nWORKDIR /app\nCOPY index.html .\n`
    })
    const built = async (frontEnd: string, config: string): Promise<any> => {
      await makeFrontEnd(t, frontEnd, config)
      await lab.k.configure('builds', { ...settingsOf(kind), railpack_frontend: frontEnd })
      const fields = { build_type: 'railpack', health_check_path: '/index.html' }
      const application = await lab.application(frontEnd.split(':')[1] ?? '', files(frontEnd), fields)
      await withVariables({ lab }, application)
      return await application.deployed()
    }

    await t.test('what it says of an owner, and of other layers, is not taken over', async t => {
      const other = await lab.otherProject('other', sample('other'))
      const digest = `sha256:${'0'.repeat(64)}`
      const config = {
        architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
        os: 'linux',
        rootfs: { type: 'layers', diff_ids: [digest] },
        RootFS: { type: 'layers', diff_ids: [digest] },
        config: {
          WorkingDir: '/app',
          Cmd: ['node', '-e', "require('http').createServer((q, r) => r.end('served')).listen(8080)"],
          Labels: { 'project-id': other.path.split('/')[3], 'application-id': other.id, harmless: 'yes' }
        },
        Config: { Labels: { 'application-id': other.id } }
      }
      const deployed = await built(`${named}:owner`, JSON.stringify(config))
      t.equal(deployed.status, 'success', linesOf(deployed).join('\n'))
      const { Config, RootFS } = await engine.getImage(deployed.image_tag).inspect()
      t.equal(Config.Labels?.harmless, 'yes')
      t.equal(Config.Labels?.['application-id'], deployed.application_id)
      t.notMatch(JSON.stringify([Config, RootFS]), new RegExp(`${other.id}|${digest}`))
    })

    await t.test('what cannot be an image is refused', async t => {
      const members = 'Object.fromEntries(Array.from({ length: 30_000 }, (_, at) => [at, {}]))'
      const config = `{ architecture: 'amd64', os: 'linux', config: { Volumes: ${members} } }`
      t.match(await built(`${named}:members`, config), {
        status: 'failed',
        error_message: /is no image as it should be, and is not used/
      })
    })
  })
}
