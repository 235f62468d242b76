/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of rocDecode.
 *
 * A list for macros, included more than once: ROCP_F(function, arguments) with ROCP_A(type, name),
 * ROCP_P(type, name, parameters) for a pointer to a function, ROCP_N(no_args) for none. The order
 * is that of ids.
 */
/* clang-format off */
ROCP_F(rocDecCreateVideoParser, ROCP_A(RocdecVideoParser *, parser_handle)
	ROCP_A(RocdecParserParams *, params))
ROCP_F(rocDecParseVideoData, ROCP_A(RocdecVideoParser, parser_handle)
	ROCP_A(RocdecSourceDataPacket *, packet))
ROCP_F(rocDecDestroyVideoParser, ROCP_A(RocdecVideoParser, parser_handle))
ROCP_F(rocDecCreateDecoder, ROCP_A(rocDecDecoderHandle *, decoder_handle)
	ROCP_A(RocDecoderCreateInfo *, decoder_create_info))
ROCP_F(rocDecDestroyDecoder, ROCP_A(rocDecDecoderHandle, decoder_handle))
ROCP_F(rocDecGetDecoderCaps, ROCP_A(RocdecDecodeCaps *, decode_caps))
ROCP_F(rocDecDecodeFrame, ROCP_A(rocDecDecoderHandle, decoder_handle)
	ROCP_A(RocdecPicParams *, pic_params))
ROCP_F(rocDecGetDecodeStatus, ROCP_A(rocDecDecoderHandle, decoder_handle) ROCP_A(int, pic_idx)
	ROCP_A(RocdecDecodeStatus *, decode_status))
ROCP_F(rocDecReconfigureDecoder, ROCP_A(rocDecDecoderHandle, decoder_handle)
	ROCP_A(RocdecReconfigureDecoderInfo *, reconfig_params))
ROCP_F(rocDecGetVideoFrame, ROCP_A(rocDecDecoderHandle, decoder_handle) ROCP_A(int, pic_idx)
	ROCP_A(void **, dev_mem_ptr) ROCP_A(uint32_t *, horizontal_pitch)
	ROCP_A(RocdecProcParams *, vid_postproc_params))
ROCP_F(rocDecGetErrorName, ROCP_A(rocDecStatus, rocdec_status))
#if ROCDECODE_RUNTIME_API_TABLE_STEP_VERSION >= 1
ROCP_F(rocDecCreateBitstreamReader, ROCP_A(RocdecBitstreamReader *, bs_reader_handle)
	ROCP_A(const char *, input_file_path))
ROCP_F(rocDecGetBitstreamCodecType, ROCP_A(RocdecBitstreamReader, bs_reader_handle)
	ROCP_A(rocDecVideoCodec *, codec_type))
ROCP_F(rocDecGetBitstreamBitDepth, ROCP_A(RocdecBitstreamReader, bs_reader_handle)
	ROCP_A(int *, bit_depth))
ROCP_F(rocDecGetBitstreamPicData, ROCP_A(RocdecBitstreamReader, bs_reader_handle)
	ROCP_A(uint8_t **, pic_data) ROCP_A(int *, pic_size) ROCP_A(int64_t *, pts))
ROCP_F(rocDecDestroyBitstreamReader, ROCP_A(RocdecBitstreamReader, bs_reader_handle))
#endif
