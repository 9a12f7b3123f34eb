/** What the engine takes for the same. */
const otherNames: Readonly<Record<string, string>> = { aarch64: 'arm64', i386: '386' }
/** What is meant without a variant. */
const usualVariants: Readonly<Record<string, string>> = { arm64: 'v8', arm: 'v7' }

/**
 * The variables of platforms that BuildKit sets, where build and image are for the same machine. FROM may say them at once, a stage
 * once it has declared them.
 */
export function platformArguments(platform: string): Readonly<Record<string, string>> {
  const [system = '', architecture = '', variant = ''] = platform.split('/')
  return Object.fromEntries(
    ['BUILD', 'TARGET'].flatMap(side => [
      [`${side}PLATFORM`, platform],
      [`${side}OS`, system],
      [`${side}ARCH`, architecture],
      [`${side}VARIANT`, variant]
    ])
  )
}

/** Whether an image that is made for `platform` (`linux/arm64/v8`) is what a --platform asks for: `linux/arm64`, or a part of it. */
export function isForPlatform(platform: string, wanted: string): boolean {
  const [system, processor = '', variant = usualVariants[processor]] = platform.split('/')
  const words = wanted.split('/')
  const [wantedSystem, wantedName, wantedVariant] =
    words.length === 1 && words[0] !== system ? [system, ...words] : words
  return (
    wantedSystem === system &&
    (wantedName === undefined || (otherNames[wantedName] ?? wantedName) === processor) &&
    (wantedVariant === undefined || wantedVariant === variant)
  )
}
