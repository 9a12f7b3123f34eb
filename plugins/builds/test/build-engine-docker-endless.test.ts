import { testEndlessBuilds } from './engine-endless-cases.js'
import { engineKinds } from './engine-lab.js'

testEndlessBuilds('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
