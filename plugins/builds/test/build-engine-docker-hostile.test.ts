import { testHostileBuilds } from './engine-hostile-cases.js'
import { engineKinds } from './engine-lab.js'

testHostileBuilds('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
