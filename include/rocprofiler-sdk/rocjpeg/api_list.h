/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of rocJPEG.
 *
 * A list for macros, included more than once: ROCP_F(function, arguments) with ROCP_A(type, name),
 * ROCP_P(type, name, parameters) for a pointer to a function, ROCP_N(no_args) for none. The order
 * is that of ids.
 */
/* clang-format off */
ROCP_F(rocJpegStreamCreate, ROCP_A(RocJpegStreamHandle *, jpeg_stream_handle))
ROCP_F(rocJpegStreamParse, ROCP_A(const unsigned char *, data) ROCP_A(size_t, length)
	ROCP_A(RocJpegStreamHandle, jpeg_stream_handle))
ROCP_F(rocJpegStreamDestroy, ROCP_A(RocJpegStreamHandle, jpeg_stream_handle))
ROCP_F(rocJpegCreate, ROCP_A(RocJpegBackend, backend) ROCP_A(int, device_id)
	ROCP_A(RocJpegHandle *, handle))
ROCP_F(rocJpegDestroy, ROCP_A(RocJpegHandle, handle))
ROCP_F(rocJpegGetImageInfo, ROCP_A(RocJpegHandle, handle)
	ROCP_A(RocJpegStreamHandle, jpeg_stream_handle) ROCP_A(uint8_t *, num_components)
	ROCP_A(RocJpegChromaSubsampling *, subsampling) ROCP_A(uint32_t *, widths)
	ROCP_A(uint32_t *, heights))
ROCP_F(rocJpegDecode, ROCP_A(RocJpegHandle, handle) ROCP_A(RocJpegStreamHandle, jpeg_stream_handle)
	ROCP_A(const RocJpegDecodeParams *, decode_params) ROCP_A(RocJpegImage *, destination))
ROCP_F(rocJpegDecodeBatched, ROCP_A(RocJpegHandle, handle)
	ROCP_A(RocJpegStreamHandle *, jpeg_stream_handles) ROCP_A(int, batch_size)
	ROCP_A(const RocJpegDecodeParams *, decode_params) ROCP_A(RocJpegImage *, destinations))
ROCP_F(rocJpegGetErrorName, ROCP_A(RocJpegStatus, rocjpeg_status))
