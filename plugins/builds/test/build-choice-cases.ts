import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import type { GitFiles } from '../../../lab/git-server.js'
import type { DeployLab, LabApplication } from '../../deployments/test/deploy-lab.js'

const serving = 'WORKDIR /www\nEXPOSE 8080\nCMD ["httpd", "-f", "-p", "8080"]\n'

const staged: GitFiles = {
  Dockerfile: `FROM busybox:lab AS base
WORKDIR /www
FROM base AS web
RUN echo web > index.html
${serving}FROM base AS worker
RUN echo worker > index.html
${serving}`
}

const platforms = (platform: string): GitFiles => ({
  Dockerfile: `FROM --platform=$BUILDPLATFORM busybox:lab AS made
ARG TARGETPLATFORM
ARG TARGETARCH
ARG BUILDPLATFORM
WORKDIR /www
RUN echo "$BUILDPLATFORM for $TARGETPLATFORM ($TARGETARCH)" > index.html
FROM ${platform === '' ? 'busybox:lab' : 'scratch'}
COPY --from=made /www /www
${serving}`
})

/** The first one of a project starts its build engine. */
const deployMs = 180_000

/** What applications choose of their build: its stage, and what kind of machine it is for. */
export function testBuildChoices(
  name: string,
  open: (t: Test) => Promise<DeployLab>,
  { isClassic }: { readonly isClassic: boolean }
): void {
  void test(`target and platform of a build by ${name}`, async t => {
    if (!(await requireEngine(t))) return
    const lab = await open(t)
    const admin = await lab.k.as.session()
    const served = async ({ read }: LabApplication): Promise<string> =>
      (await (await fetch((await read()).direct_url)).text()).trim()

    const deployed = async (application: LabApplication): Promise<any> =>
      await application.ended((await application.deploy()).id, deployMs)

    await t.test('the stage that is named becomes the image, and another one builds anew', async t => {
      const application = await lab.application('staged', staged, { build_target: 'Web' })
      t.match(await deployed(application), { status: 'success', error_message: null })
      t.equal(await served(application), 'web')
      const changed = await admin.put(application.path, { build_target: null })
      t.match(changed.body, { build_target: null, pending_change: 'source' })
      t.match(await deployed(application), { status: 'success', error_message: null })
      t.equal(await served(application), 'worker', 'the last one, where none is named')
      await admin.put(application.path, { build_target: 'tests' })
      t.match(await deployed(application), {
        status: 'failed',
        error_message: /Dockerfile has no stage tests, .*its stages are base, web, worker/
      })
    })

    await t.test('a Dockerfile is told for which platform it builds, and on which', async t => {
      const application = await lab.application('told', platforms(''))
      t.match(await deployed(application), { status: 'success', error_message: null })
      t.match(await served(application), /^(linux\/(\w+)) for \1 \(\2\)$/)
    })

    await t.test(
      'what this machine cannot run is refused before a container starts, with the remedy',
      async t => {
        const application = await lab.application('foreign', platforms('linux/s390x'), {
          build_platform: 'linux/s390x'
        })
        t.match(await deployed(application), {
          status: 'failed',
          error_message: isClassic
            ? /the classic builder builds for its own machine alone .*build_engine/
            : /made for linux\/s390x, and this machine is .*tonistiigi\/binfmt --install s390x/
        })
        t.equal((await application.containers()).length, 0)
      }
    )
  })
}
