import { testBuildEngine } from './engine-cases.js'
import { engineKinds } from './engine-lab.js'

testBuildEngine('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
