import { testEngineImage } from './engine-image-cases.js'
import { engineKinds } from './engine-lab.js'

testEngineImage('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
