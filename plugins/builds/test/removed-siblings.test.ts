import type { Readable } from 'node:stream'
import type { BuildOptions } from 'busbar/api/images'
import { buildProblem } from '../../runtime-docker/build-failure.js'
import { engineTest } from '../../runtime-docker/test/lab.js'
import { startDockerfileLab } from './dockerfile-lab.js'
import type { Engine } from './fetched-lab.js'

/**
 * What the Docker Engine says when it looks for a cached step among the images that continue the same one, or nothing, and
 * somebody removes one of these meanwhile: it lists them, and then reads each.
 */
const words = `unable to find image "sha256:${'e8'.repeat(32)}"`

const failing =
  (times: number) =>
  (engine: Engine): Partial<Engine> => ({
    build: async (context: Readable, options: BuildOptions, progress) => {
      if (times-- <= 0) return await engine.build(context, options, progress)
      context.destroy()
      throw buildProblem(words, { dockerfile: 'Dockerfile', memoryBytes: 0, baseImage: '' })
    }
  })

engineTest('a build goes on when others remove images while the engine looks through its cache', async t => {
  const { build, builds } = startDockerfileLab(t, failing(3))
  const { error, log, image } = await build({ Dockerfile: 'FROM busybox:lab\nRUN echo x > /x\n' })
  t.equal(error?.message, undefined)
  t.ok(image)
  t.equal(builds(), 4)
  t.equal(log.match(/removed by somebody.*building again/g)?.length, 3)
})

engineTest('a build for which the engine never gets through its cache ends with its words', async t => {
  const { build, builds } = startDockerfileLab(t, failing(Infinity))
  const { error } = await build({ Dockerfile: 'FROM busybox:lab\nRUN echo x > /x\n' })
  t.match(error, { code: 'E_BUILD_FAILED', message: /unable to find image/ })
  t.equal(builds(), 5)
})
