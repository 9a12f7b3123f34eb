import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { testBuildChoices } from './build-choice-cases.js'
import { testEngineAccounts } from './engine-account-cases.js'
import { testBuildEngine } from './engine-cases.js'
import { testEndlessBuilds } from './engine-endless-cases.js'
import { testForeignNames, testHostileBuilds } from './engine-hostile-cases.js'
import { engineKinds, openEngineLab, settingsOf } from './engine-lab.js'
import { testEngineLimits } from './engine-limit-cases.js'
import { testNixpacksInEngine } from './engine-nixpacks-cases.js'
import { testRailpackInEngine } from './engine-railpack-cases.js'
import { testSshMounts } from './engine-ssh-cases.js'
import { testStaticSitesInEngine } from './engine-static-cases.js'
import { testWrittenDockerfiles } from './written-cases.js'

testBuildEngine('BuildKit', engineKinds.BuildKit)
testEngineAccounts('BuildKit', engineKinds.BuildKit)
testBuildChoices('BuildKit', async t => await openEngineLab(t, engineKinds.BuildKit), { isClassic: false })
testEngineLimits('BuildKit', engineKinds.BuildKit)
testStaticSitesInEngine('BuildKit', engineKinds.BuildKit)
testEndlessBuilds('BuildKit', engineKinds.BuildKit)
testHostileBuilds('BuildKit', engineKinds.BuildKit)
testForeignNames('BuildKit', engineKinds.BuildKit)
testNixpacksInEngine('BuildKit', engineKinds.BuildKit)
testRailpackInEngine('BuildKit', engineKinds.BuildKit)
testSshMounts('BuildKit', engineKinds.BuildKit)

testWrittenDockerfiles('BuildKit', engineKinds.BuildKit)

void test('a project may change from one kind of build engine to another', async t => {
  if (!(await requireEngine(t))) return
  const first = engineKinds['the Docker Engine of this machine']
  const lab = await openEngineLab(t, first)
  const application = await lab.application('moving', {
    'index.html': 'here',
    Dockerfile: 'FROM busybox:lab\nCOPY . .\nEXPOSE 8080\nCMD ["httpd", "-f", "-p", "8080"]\n'
  })
  for (const kind of [first, engineKinds.BuildKit, first]) {
    await lab.k.configure('builds', settingsOf(kind))
    await application.push({ 'index.html': kind.image })
    const deployed = await application.deployed()
    t.match(
      deployed,
      { status: 'success', build_engine: kind.build_engine },
      JSON.stringify(deployed.error_message)
    )
  }
})
