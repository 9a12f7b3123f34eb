import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import Docker from 'dockerode'
import { extract } from 'tar-stream'
import { lastFirst } from '../../../lab/engine-cleanup.js'
import { rotatingSample } from '../../../scripts/rotating-sample.mjs'
import { engineTest } from '../../runtime-docker/test/lab.js'
import { startDockerfileLab, tree } from './dockerfile-lab.js'
import { fileServer } from './file-server.js'
import { processes } from './kit.js'
import { ordinary, ordinaryFetching } from './ordinary-dockerfiles.js'

const ours = /^(?:managed-by|(?:project|application|deployment|database)-id|busbar-.*)$/

/** What an image says of itself, without what every image has anew. */
async function configOf(docker: Docker, image: string) {
  const {
    Config: { Labels: labels, Image: _, ...config },
    Architecture: architecture,
    Os: os,
    Author: author
  } = await docker.getImage(image).inspect()
  return {
    ...config,
    Labels: Object.fromEntries(Object.entries(labels ?? {}).filter(([key]) => !ours.test(key))),
    architecture,
    os,
    author
  }
}

/** Every file of an image, with its owner, its mode and its content. */
async function filesOf(docker: Docker, image: string): Promise<string[]> {
  const container = await docker.createContainer({ Image: image, Cmd: ['none'], Entrypoint: null as never })
  try {
    const entries: string[] = []
    const reader = extract()
    reader.on('entry', ({ name, type, mode, uid, gid, linkname = '' }, stream, next) => {
      const hash = createHash('sha256')
      stream.on('data', piece => hash.update(piece as Buffer))
      stream.on('end', () => {
        entries.push(
          [name, type, mode?.toString(8), uid, gid, linkname, hash.digest('hex').slice(0, 16)].join(' ')
        )
        next()
      })
    })
    await new Promise<void>((resolve, reject) => {
      reader.on('finish', resolve).on('error', reject)
      void container
        .export()
        .then(stream => Readable.from(stream).pipe(reader as unknown as NodeJS.WritableStream), reject)
    })
    return entries.sort()
  } finally {
    await container.remove({ force: true, v: true })
  }
}

/** What the docker command has made on the way; only their ids tell whose they are. */
async function removeSteps(ids: ReadonlySet<string>): Promise<void> {
  const docker = new Docker()
  const steps = (await docker.listImages({ all: true })).filter(
    ({ Id, RepoTags }) =>
      ids.has(Id.slice('sha256:'.length).slice(0, 12)) &&
      (RepoTags ?? []).every(tag => tag.startsWith('<none>'))
  )
  for (const id of lastFirst(steps))
    await docker
      .getImage(id)
      .remove()
      // gone with the one that continued it
      .catch(() => undefined)
}

engineTest(
  'an ordinary Dockerfile gives the image that the docker command makes of it: its configuration and its files',
  async t => {
    const steps = new Set<string>()
    t.teardown(async () => await removeSteps(steps))
    const {
      lab: { docker, instanceId },
      build
    } = startDockerfileLab(t, undefined, 'allow')
    const exec = processes(t)
    const origin = await fileServer(t)
    const all = [...ordinary, ...ordinaryFetching(origin)]
    const chosen = rotatingSample(
      'ordinary Dockerfiles',
      all.map(({ title }) => title),
      {
        always: [
          'a node application',
          'notes after the files that are copied last, and a user before them',
          'two stages',
          'everything else',
          'ADD of addresses'
        ],
        others: 11
      }
    )
    for (const [at, { title, files }] of all.filter(one => chosen.has(one.title)).entries()) {
      const directory = await tree(t, files)
      const tag = `busbar-ordinary-${instanceId}:${at}`
      const [{ image, error, log }, { stdout, stderr, exitCode }] = await Promise.all([
        build(files),
        exec.run(['docker', 'build', '--no-cache', '--force-rm', '-t', tag, '.'], {
          cwd: directory,
          timeoutMs: 120_000,
          env: {
            DOCKER_BUILDKIT: '0',
            ...(process.env.DOCKER_HOST === undefined ? {} : { DOCKER_HOST: process.env.DOCKER_HOST })
          }
        })
      ])
      for (const [, step] of stdout.matchAll(/^ ---> ([0-9a-f]{12})$/gm)) steps.add(step ?? '')
      try {
        t.equal(error?.message, undefined, title)
        if (image === undefined) continue
        t.equal(exitCode, 0, `${title}: ${stderr}`)
        t.same(await configOf(docker, image.id), await configOf(docker, tag), title)
        t.same(...(await Promise.all([filesOf(docker, image.id), filesOf(docker, tag)])), title)
        t.notMatch(log, /sha256:/, `${title}: the log speaks of names`)
      } finally {
        await docker
          .getImage(tag)
          .remove()
          .catch(() => undefined)
      }
    }
  }
)

engineTest(
  'an error of the engine speaks of the line that the author has written, and is said once',
  async t => {
    const { build, builds } = startDockerfileLab(t)
    const copy = await build({
      Dockerfile: 'FROM busybox:lab\n\n# a comment\nRUN true \\\n  && true\n\nCOPY nothing /x\n'
    })
    t.match(copy.error, { code: 'E_BUILD_COPY', message: /nothing/ })
    t.match(copy.log, /The build stopped at line 7 of Dockerfile\./)
    const health = await build({
      Dockerfile: 'FROM busybox:lab\nRUN true \\\n  && true\n\nHEALTHCHECK --interval=x CMD true\n'
    })
    t.match(health.error, {
      code: 'E_BUILD_DOCKERFILE',
      message: /^the Dockerfile Dockerfile is not valid: line 5: .*invalid duration/
    })
    t.equal(builds(), 2, 'what failed is not built once more')
  }
)

engineTest('a build whose base is the same again uses the cache of the engine', async t => {
  const { build } = startDockerfileLab(t)
  const files = {
    Dockerfile: `ARG V=lab\nFROM busybox:$V AS a\nRUN echo ${Date.now()} > /x\nFROM a\nCOPY --from=a /x /y\nCOPY . /z\n`,
    'a.txt': 'x'
  }
  const application = '6f1c2f5e-0000-4000-8000-000000000001'
  const first = await build(files, application)
  const second = await build(files, application)
  t.equal(second.image?.id, first.image?.id)
  t.equal(second.log.match(/Using cache/g)?.length, 4)
})
