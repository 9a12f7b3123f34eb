import { testBuildpacksInEngine, testBuildpacksRefusedInEngine } from './engine-buildpacks-cases.js'
import { testBuildEngine } from './engine-cases.js'
import { testEndlessBuilds } from './engine-endless-cases.js'
import { testForeignNames, testHostileBuilds } from './engine-hostile-cases.js'
import { engineKinds } from './engine-lab.js'
import { testEngineLimits } from './engine-limit-cases.js'
import { testNixpacksInEngine } from './engine-nixpacks-cases.js'
import { testRailpackInEngine } from './engine-railpack-cases.js'
import { testSshMounts } from './engine-ssh-cases.js'
import { testStaticSitesInEngine } from './engine-static-cases.js'
import { testWrittenDockerfiles } from './written-cases.js'

testBuildEngine('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testEngineLimits('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testStaticSitesInEngine('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testEndlessBuilds('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testHostileBuilds('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testForeignNames('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testBuildpacksInEngine('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testBuildpacksRefusedInEngine('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testNixpacksInEngine('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testRailpackInEngine('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testSshMounts('a newer Docker Engine', engineKinds['a newer Docker Engine'])

testWrittenDockerfiles('a newer Docker Engine', engineKinds['a newer Docker Engine'])
