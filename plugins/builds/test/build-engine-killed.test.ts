import { testKilledEngine } from './engine-killed-cases.js'
import { engineKinds } from './engine-lab.js'

testKilledEngine('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'], {
  always: ['a step of the build'],
  others: 1
})
