import { randomUUID } from 'node:crypto'
import { engineTest } from '../../runtime-docker/test/lab.js'
import { startDockerfileLab } from './dockerfile-lab.js'
import { nasty } from './nasty-dockerfiles.js'

const secret = 'the-secret-of-the-victim'
const victimFiles = { Dockerfile: 'FROM busybox:lab\nCOPY secret /secret\n', secret }

engineTest(
  'no Dockerfile gets anything of the image of another application, whatever it knows of it',
  async t => {
    const { build, builds, lab } = startDockerfileLab(t)
    const victim = await build(victimFiles, randomUUID())
    const attacker = randomUUID()
    t.equal(victim.error?.message, undefined)
    for (const { title, text, line, reason } of nasty({ id: victim.image?.id ?? '', name: victim.tag })) {
      const before = builds()
      const { error, log, tag } = await build({ Dockerfile: text }, attacker)
      t.notMatch(log, secret, title)
      t.ok(error !== undefined, `${title}: it is not built`)
      t.equal(await lab.runtime.image(tag), undefined, `${title}: it leaves no image`)
      if (reason === undefined) continue
      t.match(
        error,
        {
          code: /^E_(?:BUILD_(?:DOCKERFILE|BUILDKIT|LABELS)|SOURCE_HOST_PRIVATE)$/,
          message: new RegExp(`line ${line}\\b`)
        },
        title
      )
      t.equal(builds(), before, `${title}: the engine is not asked`)
    }
    const own = await build({ Dockerfile: 'FROM busybox:lab\nRUN echo mine > /secret\n' }, attacker)
    const again = await build({ Dockerfile: `FROM ${own.tag}\nRUN cat /secret\n` }, attacker)
    t.match(again.log, /^mine$/m, 'its own image it may use')
  }
)

engineTest(
  'a name that comes to mean the image of another application after it was checked gives nothing of it',
  async t => {
    let move = async (): Promise<void> => {}
    const { build, lab } = startDockerfileLab(t, engine => ({
      imageLabels: async owner => {
        await move()
        return await engine.imageLabels(owner)
      }
    }))
    const victim = await build(victimFiles, randomUUID())
    const moving = `busbar-moving-${lab.instanceId}`
    await lab.docker.getImage('busybox:lab').tag({ repo: moving, tag: '1' })
    t.teardown(async () => {
      await lab.docker
        .getImage(`${moving}:1`)
        .remove()
        .catch(() => undefined)
    })
    move = async () => {
      await lab.docker.getImage(victim.image?.id ?? '').tag({ repo: moving, tag: '1' })
    }
    const { error, log } = await build({
      Dockerfile: `FROM ${moving}:1 AS a\nFROM busybox:lab\nCOPY --from=${moving}:1 /secret /got\nRUN cat /got\n`
    })
    t.match(error, { code: 'E_BUILD_COPY' })
    t.notMatch(log, secret)
    t.equal((await lab.runtime.image(`${moving}:1`))?.id, victim.image?.id, 'the name was moved meanwhile')
  }
)

engineTest(
  'triggers of an image that everybody may use get nothing of the image of another application',
  async t => {
    const { build, lab } = startDockerfileLab(t)
    const victim = await build(victimFiles, randomUUID())
    const name = `busbar-triggers-${lab.instanceId}`
    const container = await lab.docker.createContainer({ Image: 'busybox:lab', Cmd: ['true'] })
    t.teardown(async () => {
      await container.remove()
    })
    const triggers = [
      `COPY --from=${victim.image?.id ?? ''} /secret /got`,
      `COPY --from=${victim.tag} /secret /got`,
      `COPY --from="${victim.tag}" /secret /got`,
      'ADD http://127.0.0.1:1/x /got',
      `RUN true\nCOPY --from=${victim.tag} /secret /got`
    ]
    for (const [at, trigger] of triggers.entries()) {
      const tag = `${name}:${at}`
      await new Promise<void>((resolve, reject) => {
        // dockerode sends no configuration with a commit.
        lab.docker.modem.dial(
          {
            path: '/commit?',
            method: 'POST',
            options: {
              _query: { container: container.id, repo: name, tag: String(at) },
              _body: { OnBuild: [trigger] }
            },
            statusCodes: { 201: true }
          },
          error => {
            if (error === null || error === undefined) resolve()
            else reject(error as Error)
          }
        )
      })
      t.teardown(async () => {
        await lab.docker
          .getImage(tag)
          .remove({ force: true })
          .catch(() => undefined)
      })
      t.same((await lab.docker.getImage(tag).inspect()).Config.OnBuild, [trigger])
      const { error, log } = await build({ Dockerfile: `FROM ${tag}\nRUN cat /got\n` })
      t.match(error, { code: /^E_(?:BUILD_DOCKERFILE|IMAGE_FOREIGN)$/ }, trigger)
      t.notMatch(log, secret, trigger)
    }
  }
)
