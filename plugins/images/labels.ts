import { ownerKeys } from 'busbar/api/containers'

/** A label that means something to a platform, or may to a later one. */
export const isReservedLabel = (key: string): boolean =>
  key.startsWith('busbar-') || key === 'managed-by' || Object.values<string>(ownerKeys).includes(key)
