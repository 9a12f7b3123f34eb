import type { PrivateImages } from '../registry/private-images.js'

/** Nothing here needs an account, so nothing is anybody's. */
export const allPublic: PrivateImages = {
  note: async () => {},
  isOfOthers: async () => false,
  isFrom: async () => false,
  pullsOfOthers: async () => [],
  layersOfOthers: async () => [],
  noteLayers: async () => {},
  proof: async () => undefined,
  beginPull: async () => {},
  endPull: async () => {},
  isBeingPulled: async () => false
}
