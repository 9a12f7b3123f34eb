export const usualMode = '0644'

/** As it is kept: four octal digits. Undefined for what is no mode, or more than rights of owner, group and others. */
export function fileModeOf(text: string): string | undefined {
  const [, digits] = /^(?:0|0o)?([0-7]{3})$/.exec(text) ?? []
  return digits === undefined ? undefined : `0${digits}`
}

export const modeBits = (mode: string): number => Number.parseInt(mode, 8)
