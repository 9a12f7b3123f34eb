/**
 * Fetches images from registries: `describeImage`, then `openLayer` for each of its layers. Nothing is believed that
 * has not the digest that was asked for, and every host is under the host rules.
 */

export { RegistryReader } from './registry-reader.js'
export { describeImage, openLayer, type RemoteImage, type RemoteLayer } from './remote-image.js'
export { UnpackBudget } from './unpack-budget.js'
