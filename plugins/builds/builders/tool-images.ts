import type { BuildContext, BuildRequest } from '../api.js'
import { problems } from '../problems.js'
import { checkName, type ResolverParts, resolveImage } from '../registry/image-resolver.js'

/**
 * The name by which the engine knows an image that a program is to build with. The program does not check whose an image is, and the
 * engine, were the program to pull one, would take whatever it holds for handed out.
 */
export async function resolveToolImage(
  reference: string,
  {
    projectId,
    applicationId,
    deploymentId
  }: Pick<BuildRequest, 'projectId' | 'applicationId' | 'deploymentId'>,
  parts: ResolverParts,
  context: BuildContext
): Promise<string> {
  refuseIds(reference)
  return (await resolveImage(parts, { reference, projectId, applicationId, deploymentId }, context)).name
}

/** The same for a build engine, which is given an image of that name, or pulls it as everybody may: its name, with a tag. */
export async function checkToolImage(
  reference: string,
  { applicationId }: Pick<BuildRequest, 'applicationId'>,
  parts: ResolverParts
): Promise<string> {
  refuseIds(reference)
  return await checkName(parts, reference, applicationId)
}

function refuseIds(reference: string): void {
  if (/^(?:sha256:)?[0-9a-f]+$/.test(reference))
    throw problems.badImageName({ image: reference.slice(0, 200) })
}
