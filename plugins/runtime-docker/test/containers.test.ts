import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { until } from 'busbar/sdk/testing'
import { engineTest, sharedLab, startLab } from './lab.js'

const newProject = sharedLab()
const project = (id: string) => ({ id, slug: `t${id.slice(0, 8)}` })

engineTest('the engine says its version, how many containers it has, and what its machine is', async t => {
  const { runtime } = newProject()
  const info = await runtime.info()
  t.match(info.version, /^\d+\./)
  t.match(info.apiVersion, /^1\./)
  t.type(info.containers, 'number')
  t.match(info, { cores: availableParallelism(), place: 'here' })
  t.ok(info.memoryBytes > 2 ** 28)
  t.ok(info.dataRoot.startsWith('/'))
  t.match(info.storageDriver, /^\w+$/)
  t.equal(info.cgroupVersion, existsSync('/sys/fs/cgroup/cgroup.controllers') ? 2 : 1)
})

engineTest('a container lives from create to remove, and every step may be repeated', async t => {
  const { runtime, docker, projectId, spec } = newProject()
  const network = await runtime.ensureNetwork(project(projectId))
  const id = await runtime.create(spec('life', network))
  t.match(await runtime.inspect(id), { id, status: 'created', health: null, owner: { projectId } })

  await runtime.start(id)
  await runtime.start(id)
  t.equal((await runtime.inspect(id))?.status, 'running')

  // A signal before the shell minds it is lost.
  await until(
    async () => ((await docker.getContainer(id).top()).Processes as unknown[]).length > 2,
    'it is at work'
  )
  await runtime.stop(id, 5)
  await runtime.stop(id, 5)
  t.match(await runtime.inspect(id), { status: 'exited', exitCode: 0 })

  await runtime.remove(id)
  await runtime.remove(id)
  await runtime.stop(id, 5)
  t.equal(await runtime.inspect(id), undefined)
})

engineTest(
  'a container gets no capability, no new privileges, a read-only root with scratch space, and hard limits',
  async t => {
    const { runtime, projectId, spec, docker, instanceId } = newProject()
    const network = await runtime.ensureNetwork(project(projectId))
    const memoryLimit = 64 * 2 ** 20
    const id = await runtime.create(
      spec('hard', network, {
        memoryLimit,
        cpuLimit: 0.5,
        env: { GREETING: 'a=b c' },
        command: [
          'sh',
          '-c',
          'grep -E "CapEff|CapBnd|NoNewPrivs" /proc/1/status; echo score $(cat /proc/1/oom_score_adj); touch /x 2>/dev/null || echo root is read-only; touch /tmp/a /run/b && echo scratch; printf "#!/bin/sh\\necho runs\\n" > /tmp/c; chmod +x /tmp/c; /tmp/c; grep -E " /(tmp|run) " /proc/mounts; echo "$GREETING"; sleep 60'
        ]
      })
    )
    await runtime.start(id)
    const lines = await until(async () => {
      const tail = await runtime.tail(id, 50)
      return tail.includes('a=b c') ? tail : undefined
    }, 'the output')
    t.match(lines.join('\n'), /CapEff:\s+0{16}/)
    t.match(lines.join('\n'), /CapBnd:\s+0{16}/)
    t.match(lines.join('\n'), /NoNewPrivs:\s+1/)
    t.ok(lines.includes('score 500'), 'it ends before the platform where memory runs out')
    t.ok(lines.includes('root is read-only'))
    t.ok(lines.includes('scratch'))
    t.ok(lines.includes('runs'))
    for (const [path, size] of [
      ['/tmp', '262144k'],
      ['/run', '65536k']
    ] as const) {
      const set =
        lines
          .find(line => line.split(' ')[1] === path)
          ?.split(' ')[3]
          ?.split(',') ?? []
      for (const wanted of ['nosuid', 'nodev', `size=${size}`])
        t.ok(set.includes(wanted), `${path} ${wanted}`)
    }

    const seen = await docker.getContainer(id).inspect()
    t.match(seen.HostConfig, {
      Memory: memoryLimit,
      MemorySwap: memoryLimit,
      NanoCpus: 5e8,
      Init: true,
      PidsLimit: 4096,
      OomScoreAdj: 500,
      RestartPolicy: { Name: 'unless-stopped' },
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } }
    })
    t.same(seen.HostConfig.PortBindings, null)
    t.equal((seen.Config as { StopTimeout?: number }).StopTimeout, 30)
    t.match(seen.Config.Labels, {
      'managed-by': 'busbar',
      'busbar-instance': instanceId,
      'project-id': projectId,
      'database-id': ''
    })
  }
)

engineTest(
  'no container writes into the files that the engine mounts into it from its own disk, and names resolve',
  async t => {
    const { runtime, docker, projectId, spec } = newProject()
    const network = await runtime.ensureNetwork(project(projectId))
    const plain = await docker.createContainer({ Image: 'busybox:lab' })
    t.teardown(async () => await plain.remove())
    const usual = (await plain.inspect()).HostConfig
    const other = await runtime.create(spec('named', network))
    await runtime.start(other)
    for (const readonlyRootfs of [false, true]) {
      const id = await runtime.create(
        spec(`files-${readonlyRootfs ? 'ro' : 'rw'}`, network, {
          readonlyRootfs,
          caps: 'standard',
          command: [
            'sh',
            '-c',
            `for f in hosts hostname resolv.conf; do (echo x >> /etc/$f) 2>/dev/null && echo wrote $f; umount /etc/$f 2>/dev/null && echo unmounted $f; done; touch /x 2>/dev/null && echo writes; nslookup ${spec('named', network).name} >/dev/null && echo resolves; grep -c . /etc/hosts /etc/hostname /etc/resolv.conf >/dev/null && echo done; sleep 60`
          ]
        })
      )
      await runtime.start(id)
      const lines = await until(async () => {
        const tail = await runtime.tail(id, 50)
        return tail.includes('done') ? tail : undefined
      }, 'the output')
      t.same(lines, [...(readonlyRootfs ? [] : ['writes']), 'resolves', 'done'])
      const { HostConfig } = await docker.getContainer(id).inspect()
      t.same(HostConfig.MaskedPaths, usual.MaskedPaths)
      t.ok(usual.ReadonlyPaths?.every(path => HostConfig.ReadonlyPaths?.includes(path)))
    }
  }
)

engineTest('variables of more than a mebibyte reach the container, and are in no address', async t => {
  const { runtime, docker, projectId, spec } = newProject()
  const network = await runtime.ensureNetwork(project(projectId))
  const env = Object.fromEntries(
    Array.from({ length: 20 }, (_, n) => [`V${n}`, `${n}`.repeat(60_000).slice(0, 60_000)])
  )
  const name = spec('large', network, {}).name
  const id = await runtime.create(
    spec('large', network, { env, command: ['sh', '-c', 'echo ${#V19}; sleep 60'] })
  )
  await runtime.start(id)
  await until(async () => (await runtime.tail(id, 5)).includes('60000'), 'the output')
  t.equal((await docker.getContainer(id).inspect()).Name, `/${name}`)
})

engineTest('a minimal container can serve port 80 and write to its volume as any user', async t => {
  const { runtime, projectId, spec } = newProject()
  const network = await runtime.ensureNetwork(project(projectId))
  const id = await runtime.create(
    spec('web', network, {
      volumes: [{ volume: `busbar-test-${projectId}`, path: '/data' }],
      command: ['sh', '-c', 'echo stored > /data/index.html && exec httpd -f -p 80 -h /data']
    })
  )
  await runtime.start(id)
  const address = await runtime.dial(id, 80)
  t.match(address, { host: /^10\./, port: 80 })
  const body = await until(
    async () =>
      await fetch(`http://${address.host}:${address.port}/`).then(
        async answer => await answer.text(),
        () => undefined
      ),
    'the answer'
  )
  t.equal(body, 'stored\n')
})

engineTest('dial refuses a container that does not run and one that does not exist', async t => {
  const { runtime, projectId, spec } = newProject()
  const id = await runtime.create(spec('idle', await runtime.ensureNetwork(project(projectId))))
  await t.rejects(runtime.dial(id, 80), {
    status: 409,
    code: 'E_CONTAINER_NOT_RUNNING',
    message: /is created: it has no address until it runs/
  })
  await t.rejects(runtime.dial('f'.repeat(64), 80), { status: 404, code: 'E_CONTAINER_MISSING' })
})

engineTest('renaming moves the name, is idempotent, and names the container that is in the way', async t => {
  const { runtime, projectId, spec } = newProject()
  const network = await runtime.ensureNetwork(project(projectId))
  const first = await runtime.create(spec('first', network))
  const second = await runtime.create(spec('second', network))
  const name = `renamed-${projectId.slice(0, 8)}`
  await runtime.rename(first, name)
  await runtime.rename(first, name)
  t.equal((await runtime.inspect(first))?.name, name)
  await t.rejects(runtime.rename(second, name), { status: 409, code: 'E_CONTAINER_NAME_TAKEN' })
  await runtime.remove(second)
  await t.rejects(runtime.rename(second, 'whatever'), { status: 404, code: 'E_CONTAINER_MISSING' })
})

engineTest('a stop is kept in the engine before it happens, and a start takes it back', async t => {
  const { runtime, docker, projectId, spec } = newProject()
  const id = await runtime.create(spec('meant', await runtime.ensureNetwork(project(projectId))))
  const policy = async (): Promise<string | undefined> =>
    (await docker.getContainer(id).inspect()).HostConfig.RestartPolicy?.Name
  await runtime.start(id)
  t.equal(await policy(), 'unless-stopped')
  await runtime.stop(id, 1)
  t.equal(await policy(), 'no')
  await runtime.start(id)
  t.equal(await policy(), 'unless-stopped')
})

engineTest('two removals and a stop of the same container at once all succeed', async t => {
  const { runtime, projectId, spec } = newProject()
  const id = await runtime.create(spec('race', await runtime.ensureNetwork(project(projectId))))
  await runtime.start(id)
  await Promise.all([runtime.remove(id), runtime.remove(id), runtime.stop(id, 1), runtime.remove(id)])
  t.equal(await runtime.inspect(id), undefined)
})

engineTest('a taken name, a missing image and a refused start are told apart', async t => {
  const { runtime, docker, projectId, spec } = newProject()
  const network = await runtime.ensureNetwork(project(projectId))
  const id = await runtime.create(spec('twice', network))
  await t.rejects(runtime.create(spec('twice', network)), { status: 409, code: 'E_CONTAINER_NAME_TAKEN' })
  await t.rejects(runtime.create(spec('none', network, { image: 'busbar-no-such:1' })), {
    status: 404,
    code: 'E_IMAGE_MISSING',
    message: /busbar-no-such:1/
  })
  await docker.getNetwork(network).remove()
  await t.rejects(runtime.start(id), {
    code: 'E_ENGINE_REFUSED',
    message: /refused to start the container .*network .* not found/
  })
  t.match((await runtime.inspect(id))?.error, /not found/)
  await t.rejects(runtime.start('0'.repeat(64)), { code: 'E_CONTAINER_MISSING' })
  await t.rejects(runtime.start('../networks/create?'), { code: 'E_CONTAINER_MISSING' })
  t.equal(await runtime.inspect('../images/json?x='), undefined)
})

engineTest(
  'a command that does not exist shows in the output, and its restart loop can be removed',
  async t => {
    const { runtime, projectId, spec } = newProject()
    const network = await runtime.ensureNetwork(project(projectId))
    const id = await runtime.create(spec('broken', network, { command: ['/no/such/program'] }))
    await runtime.start(id)
    const state = await until(async () => {
      const seen = await runtime.inspect(id)
      return seen !== undefined && seen.exitCode !== 0 ? seen : undefined
    }, 'the failure')
    t.equal(state.exitCode, 127)
    t.match((await runtime.tail(id, 10)).join('\n'), /\/no\/such\/program.*No such file/)
    await runtime.remove(id)
    t.equal(await runtime.inspect(id), undefined)
  }
)

engineTest(
  'list finds containers by every id of their owner, and an image cannot claim another owner',
  async t => {
    const { runtime, projectId, spec, docker } = newProject()
    const network = await runtime.ensureNetwork(project(projectId))
    const [applicationId, databaseId] = [randomUUID(), randomUUID()]
    const deploymentId = randomUUID()
    const application = await runtime.create(
      spec('app', network, { owner: { projectId, applicationId, deploymentId } })
    )
    await docker
      .getContainer(application)
      .commit({ repo: `claims-${projectId}`, changes: `LABEL database-id=${databaseId}` })
    const claiming = await runtime.create(
      spec('claim', network, { image: `claims-${projectId}`, owner: { projectId } })
    )
    const database = await runtime.create(spec('db', network, { owner: { projectId, databaseId } }))

    const ids = async (owner: Parameters<typeof runtime.list>[0]) =>
      (await runtime.list(owner)).map(({ id }) => id).sort()
    t.same(await ids({ applicationId }), [application])
    t.same(await ids({ applicationId, deploymentId }), [application])
    t.same(await ids({ databaseId }), [database])
    t.same(await ids({ projectId }), [application, claiming, database].sort())
    t.same(await ids({ projectId, deploymentId: randomUUID() }), [])
    await runtime.remove(application)
    await runtime.remove(claiming)
    await docker.getImage(`claims-${projectId}`).remove({ force: true })
  }
)

engineTest('a platform sees and touches nothing of another one on the same engine', async t => {
  const mine = startLab(t)
  const other = startLab(t)
  const id = await mine.runtime.create(
    mine.spec('mine', await mine.runtime.ensureNetwork(project(mine.projectId)))
  )
  t.same(await other.runtime.list({}), [])
  t.same(await other.runtime.list({ projectId: mine.projectId }), [])
  t.equal(await other.runtime.inspect(id), undefined)
  await t.rejects(other.runtime.remove(id), { status: 409, code: 'E_CONTAINER_FOREIGN' })
  await t.rejects(other.runtime.stop(id, 1), { code: 'E_CONTAINER_FOREIGN' })
  await t.rejects(other.runtime.rename(id, 'stolen'), { code: 'E_CONTAINER_FOREIGN' })
  await other.runtime.removeNetworks(mine.projectId)
  t.equal((await mine.runtime.list({})).length, 1)
  t.equal(await mine.runtime.ensureNetwork(project(mine.projectId)), `busbar-t${mine.projectId.slice(0, 8)}`)
})

engineTest('the health command is run, and its last output is told', async t => {
  const { runtime, projectId, spec } = newProject()
  const network = await runtime.ensureNetwork(project(projectId))
  const id = await runtime.create(
    spec('health', network, {
      healthCommand: {
        command: 'echo "disk is $((40 + 2)) % full"; test -e /tmp/ok',
        intervalSeconds: 1,
        timeoutSeconds: 5,
        retries: 1,
        startPeriodSeconds: 0
      }
    })
  )
  await runtime.start(id)
  t.equal((await runtime.inspect(id))?.health, 'starting')
  const state = await until(async () => {
    const seen = await runtime.inspect(id)
    return seen?.health === 'unhealthy' ? seen : undefined
  }, 'unhealthy')
  t.equal(state.healthOutput, 'disk is 42 % full')
})

engineTest('tail answers the last lines of both streams in their order, and bounds what is wild', async t => {
  const { runtime, projectId, spec } = newProject()
  const id = await runtime.create(
    spec('tail', await runtime.ensureNetwork(project(projectId)), {
      command: [
        'sh',
        '-c',
        'for i in 1 2 3; do echo out $i; sleep 0.05; echo err $i >&2; sleep 0.05; done; head -c 40000 /dev/zero | tr "\\0" x; echo; printf "a\\0b\\n"; sleep 60'
      ]
    })
  )
  await runtime.start(id)
  const lines = await until(async () => {
    const tail = await runtime.tail(id, 100)
    return tail.at(-1) === 'ab' ? tail : undefined
  }, 'the last line')
  t.same(lines.slice(0, 6), ['out 1', 'err 1', 'out 2', 'err 2', 'out 3', 'err 3'])
  t.equal(lines[6]?.length, 16_384 + ' … (cut)'.length)
  t.same(await runtime.tail(id, 1), ['ab'])
  await t.rejects(runtime.tail('0'.repeat(64), 5), { code: 'E_CONTAINER_MISSING' })
})
