import { testForeignNames } from './engine-hostile-cases.js'
import { engineKinds } from './engine-lab.js'

testForeignNames('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
