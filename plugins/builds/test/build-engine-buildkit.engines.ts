import { testBuildEngine } from './engine-cases.js'
import { engineKinds } from './engine-lab.js'

testBuildEngine('BuildKit', engineKinds.BuildKit)
