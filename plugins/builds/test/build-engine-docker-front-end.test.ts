import { testLyingFrontEnd } from './engine-hostile-cases.js'
import { engineKinds } from './engine-lab.js'

testLyingFrontEnd('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
