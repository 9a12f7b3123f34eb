import { problems } from './problems.js'

/** The name of a volume as it may become part of an address, and of a path. */
export function checked(name: string): string {
  if (!/^[a-zA-Z0-9][\w.-]+$/.test(name)) throw problems.badVolume({ volume: name.slice(0, 200) })
  return name
}
