import { testBuildEngine } from './engine-cases.js'
import { engineKinds } from './engine-lab.js'
import { testEngineLimits } from './engine-limit-cases.js'

testBuildEngine('a newer Docker Engine', engineKinds['a newer Docker Engine'])
testEngineLimits('a newer Docker Engine', engineKinds['a newer Docker Engine'])
