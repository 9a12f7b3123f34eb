import { engineKinds } from './engine-lab.js'
import { testEngineLimits } from './engine-limit-cases.js'

testEngineLimits('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
