import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { BuildOptions } from 'busbar/api/images'
import { until } from 'busbar/sdk/testing'
import { pack } from 'tar-stream'
import { engineTest, type Lab, startLab } from './lab.js'

function contextOf(files: Readonly<Record<string, string>>): Readable {
  const tar = pack()
  for (const [name, content] of Object.entries(files)) tar.entry({ name }, content)
  tar.finalize()
  // tar-stream brings a stream class of its own.
  return Readable.from(tar)
}

const options = ({ projectId }: Lab, changes: Partial<BuildOptions> = {}): BuildOptions => ({
  tag: `lab-${projectId}:1`,
  dockerfile: 'Dockerfile',
  buildArgs: {},
  owner: { projectId },
  memoryBytes: 256 * 2 ** 20,
  cpus: 1,
  noCache: true,
  ...changes
})

const forever = new AbortController().signal

const buildLines = async (lab: Lab, dockerfile: string, changes: Partial<BuildOptions> = {}) => {
  const lines: string[] = []
  const image = await lab.runtime.build(contextOf({ Dockerfile: dockerfile }), options(lab, changes), {
    onLine: line => lines.push(line),
    signal: forever
  })
  return { image, lines }
}

/** Containers of build steps have no labels, so the tests put the id of their project into each command. */
const buildContainers = async ({ docker, projectId }: Lab) =>
  (await docker.listContainers({ all: true })).filter(({ Command }) => Command.includes(projectId))

// One installation, as its network for builds and the rules for it are made once; a project for each subtest.
engineTest('images', async t => {
  const installation = startLab(t)

  await t.test(
    'a build sends its lines live and answers the image with its ports, labels and tag',
    async t => {
      const lab = installation.otherProject()
      const arrived: number[] = []
      const image = await lab.runtime.build(
        contextOf({
          Dockerfile:
            'FROM busybox:lab\nARG WHO\nRUN for i in 1 2 3; do echo tick $i $WHO; sleep 0.3; done\nEXPOSE 9000 80 53/udp\n'
        }),
        options(lab, { buildArgs: { WHO: 'world' } }),
        {
          signal: forever,
          onLine: line => {
            if (line.includes('tick') && line.endsWith('world')) arrived.push(Date.now())
          }
        }
      )
      t.equal(arrived.length, 3)
      t.ok((arrived[2] ?? 0) - (arrived[0] ?? 0) > 400, 'lines come while the step runs')
      t.same(image.exposedPorts, [80, 9000])
      t.same(image.builtFor, { projectId: lab.projectId })
      t.match(image.id, /^sha256:/)
      t.equal((await lab.runtime.image(options(lab).tag))?.id, image.id)
      t.same(await lab.runtime.images({ projectId: lab.projectId }), [
        { id: image.id, tags: [options(lab).tag], owner: { projectId: lab.projectId } }
      ])
      t.same(await lab.runtime.images({ projectId: lab.instanceId }), [])
      const labels = (await lab.docker.getImage(image.id).inspect()).Config.Labels
      t.match(labels, {
        'managed-by': 'busbar',
        'project-id': lab.projectId,
        'busbar-image-instance': lab.instanceId
      })
      t.equal(
        labels['busbar-instance'],
        '',
        'a container that a person starts from it is not taken for one of the platform'
      )
    }
  )

  await t.test(
    'an image is removed once, and never while a container needs it or when another platform built it',
    async t => {
      const lab = installation.otherProject()
      const { tag } = options(lab)
      await buildLines(lab, 'FROM busybox:lab\nRUN true\n')
      await t.rejects(startLab(t).runtime.removeImage(tag), { status: 409, code: 'E_IMAGE_FOREIGN' })
      const id = await lab.runtime.create(lab.spec('uses', 'none', { image: tag }))
      await lab.runtime.start(id)
      await t.rejects(lab.runtime.removeImage(tag), { status: 409, code: 'E_IMAGE_IN_USE' })
      await lab.runtime.remove(id)
      await lab.runtime.removeImage(tag)
      await lab.runtime.removeImage(tag)
      t.equal(await lab.runtime.image(tag), undefined)
      await t.rejects(lab.runtime.image('../containers/json?x='), { status: 400, code: 'E_IMAGE_REFERENCE' })
    }
  )

  await t.test('failed builds say what failed, and leave no container behind', async t => {
    const lab = installation.otherProject()
    const { projectId, instanceId } = lab
    const cases: ReadonlyArray<readonly [dockerfile: string, code: string, message: RegExp]> = [
      [
        `FROM busybox:lab\nRUN echo ${projectId} && exit 3\n`,
        'E_BUILD_COMMAND',
        /echo [\w-]+ && exit 3 ended with exit code 3/
      ],
      // The label lets the lab remove the step that succeeded: the engine keeps it for the next build.
      [
        `FROM busybox:lab\nLABEL busbar-image-instance=${instanceId}\nRUN echo ${projectId}\nCOPY nowhere.txt /\n`,
        'E_BUILD_COPY',
        /nowhere\.txt/
      ],
      ['FROM busybox:lab\nFLY away\n', 'E_BUILD_DOCKERFILE', /unknown instruction: FLY/],
      ['FROM busybox:lab\nRUN --mount=type=cache,target=/c true\n', 'E_BUILD_BUILDKIT', /--mount option/],
      ['', 'E_BUILD_DOCKERFILE', /cannot be empty/],
      ['FROM 127.0.0.1:1/base:1\n', 'E_REGISTRY_UNREACHABLE', /127\.0\.0\.1:1\/base:1.*connection refused/]
    ]
    for (const [dockerfile, code, message] of cases) {
      await t.rejects(buildLines(lab, dockerfile), { code, message }, code)
    }
    await t.rejects(buildLines(lab, 'FROM busybox:lab\n', { dockerfile: 'other/Dockerfile' }), {
      code: 'E_BUILD_DOCKERFILE',
      message: /other\/Dockerfile/
    })
    t.same(await buildContainers(lab), [])
  })

  await t.test(
    'a step that needs more memory than it may have is killed, and the error names the limit',
    async t => {
      const lab = installation.otherProject()
      await t.rejects(
        buildLines(lab, 'FROM busybox:lab\nRUN x=$(head -c 300000000 /dev/zero | tr "\\0" a); echo $?\n', {
          memoryBytes: 64 * 2 ** 20
        }),
        { code: 'E_BUILD_KILLED', message: /64 MiB/ }
      )
    }
  )

  await t.test('binary output and a line without end stay bounded', async t => {
    const lab = installation.otherProject()
    const { lines } = await buildLines(
      lab,
      'FROM busybox:lab\nRUN head -c 3000000 /dev/urandom; echo; head -c 5000000 /dev/zero | tr "\\0" x; echo; printf "10%%\\r50%%\\r100%%\\n"\n'
    )
    t.ok(lines.every(line => line.length < 20_000))
    t.notOk(lines.some(line => /[\u0000-\u0008]/.test(line)))
    t.ok(lines.includes('100%'), 'of a progress bar the last state is kept')
  })

  await t.test('two hundred thousand lines pass through without being kept', async t => {
    const lab = installation.otherProject()
    let count = 0
    globalThis.gc?.()
    const before = process.memoryUsage().heapUsed
    let peak = 0
    await lab.runtime.build(
      contextOf({
        Dockerfile:
          'FROM busybox:lab\nRUN awk "BEGIN { for (i = 0; i < 200000; i++) print \\"line\\", i, \\"of the long output of a build\\" }"\n'
      }),
      options(lab),
      {
        signal: forever,
        onLine: line => {
          if (line.startsWith('line ')) count++
          if (count % 10_000 === 0) peak = Math.max(peak, process.memoryUsage().heapUsed)
        }
      }
    )
    t.equal(count, 200_000)
    t.ok(peak - before < 60e6, `${Math.round((peak - before) / 1e6)} MB`)
  })

  await t.test('cancelling a build ends its container within a second and leaves none', async t => {
    const lab = installation.otherProject()
    const cancel = new AbortController()
    const reason = new Error('cancelled')
    let abortedAt = 0
    await t.rejects(
      lab.runtime.build(
        contextOf({
          Dockerfile: `FROM busybox:lab\nRUN : ${lab.projectId}; for i in $(seq 1 600); do echo tick $i; sleep 0.1; done\n`
        }),
        options(lab),
        {
          signal: cancel.signal,
          onLine: line => {
            if (line !== 'tick 3') return
            abortedAt = Date.now()
            cancel.abort(reason)
          }
        }
      ),
      reason
    )
    await until(async () => (await buildContainers(lab)).length === 0, 'the container to go', 5000)
    t.ok(Date.now() - abortedAt < 10_000, `${Date.now() - abortedAt} ms`)
    t.equal(await lab.runtime.image(options(lab).tag), undefined)
  })

  await t.test('a build that is cancelled before it begins does not begin', async t => {
    const lab = installation.otherProject()
    const reason = new Error('too late')
    await t.rejects(
      lab.runtime.build(contextOf({ Dockerfile: 'FROM busybox:lab\n' }), options(lab), {
        signal: AbortSignal.abort(reason),
        onLine: () => {}
      }),
      reason
    )
  })

  await t.test('an error of the context is the error of the build', async t => {
    const lab = installation.otherProject()
    const broken = new Readable({
      read() {
        this.destroy(Object.assign(new Error('permission denied: src/key.pem'), { code: 'EACCES' }))
      }
    })
    await t.rejects(lab.runtime.build(broken, options(lab), { signal: forever, onLine: () => {} }), {
      message: 'permission denied: src/key.pem'
    })
  })

  await t.test(
    'while a step runs, what a build has written is told to be incomplete: a file without a name',
    async t => {
      const lab = installation.otherProject()
      const cancel = new AbortController()
      const reason = new Error('cancelled')
      let isWritten = false
      const run = 'exec 3>/x; rm /x; dd if=/dev/zero bs=1M count=20 2>/dev/null >&3; echo written; sleep 60'
      const building = lab.runtime.build(
        contextOf({ Dockerfile: `FROM busybox:lab\nRUN : ${lab.projectId}; ${run}\n` }),
        options(lab),
        {
          signal: cancel.signal,
          onLine: line => {
            isWritten ||= line === 'written'
          }
        }
      )
      const failure = t.rejects(building, reason)
      await until(() => isWritten, 'the step to write its file')
      const [usage] = await lab.runtime.buildUsage()
      t.match(usage, { owner: { projectId: lab.projectId }, isPartial: true })
      t.ok((usage?.bytes ?? Infinity) < 2 ** 20, 'nothing finds it')
      cancel.abort(reason)
      await failure
      t.same(await lab.runtime.buildUsage(), [])
    }
  )

  await t.test(
    'a step that the engine is about to keep goes when its image is there to be removed',
    async t => {
      const lab = installation.otherProject()
      const owner = { projectId: lab.projectId, applicationId: randomUUID() }
      const labels = Object.entries(await lab.runtime.imageLabels(owner)).map(
        ([key, value]) => `${key}=${value}`
      )
      const cancel = new AbortController()
      const reason = new Error('cancelled')
      const write = `dd if=/dev/zero of=/${lab.projectId} bs=1M count=400`
      const building = t.rejects(
        lab.runtime.build(
          contextOf({
            Dockerfile: `FROM busybox:lab\nLABEL ${labels.join(' ')}\nRUN sleep 1; ${write}\nRUN sleep 60\n`
          }),
          options(lab, { owner, isLabelled: true, noCache: false }),
          { signal: cancel.signal, onLine: () => {} }
        ),
        reason
      )
      await until(
        async () => (await buildContainers(lab)).some(({ State }) => State === 'running'),
        'the step to run',
        60_000
      )
      const [step] = await buildContainers(lab)
      await lab.docker.getContainer(step?.Id ?? '').wait()
      cancel.abort(reason)
      await building
      for (const { id } of await lab.runtime.buildSteps(owner)) await lab.runtime.removeBuildStep(id)
      const label = [`application-id=${owner.applicationId}`]
      const sizes = (await lab.docker.listImages({ filters: { label } })).map(({ Size }) => Size)
      t.ok(
        sizes.some(size => size > 400 * 2 ** 20),
        `it is among ${sizes.join(', ')}`
      )
    }
  )

  await t.test(
    'no container is made from an image that declares more ports or volumes than anybody needs',
    async t => {
      const lab = installation.otherProject()
      const network = await lab.runtime.ensureNetwork({
        id: lab.projectId,
        slug: `t${lab.projectId.slice(0, 8)}`
      })
      for (const [declaration, what] of [
        ['EXPOSE 1-40/tcp 1-30/udp', '70 exposed ports'],
        [`VOLUME ${Array.from({ length: 70 }, (_, at) => `/v${at}`).join(' ')}`, '70 volumes']
      ] as const) {
        const { id } = await lab.runtime.build(
          contextOf({ Dockerfile: `FROM busybox:lab\n${declaration}\n` }),
          options(lab),
          { onLine: () => {}, signal: forever }
        )
        await t.rejects(lab.runtime.create(lab.spec('declares', network, { image: id })), {
          code: 'E_IMAGE_DECLARES',
          message: new RegExp(
            `declares ${what}, and no container is made from one with more than 64: .*, and build`
          )
        })
        t.same(await lab.runtime.list({ projectId: lab.projectId }), [])
      }
    }
  )
})
